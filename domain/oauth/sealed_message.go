package oauth

// SealMessage seals what one replica tells another, or answers: only who keeps the server secret reads it, under the very name that it
// was sealed for, and nobody else can make one (R3).
func (k Keys) SealMessage(name string, plain []byte) ([]byte, error) {
	locks, err := k.messages(name)
	if err != nil {
		return nil, err
	}
	return locks.seal(plain), nil
}

// OpenMessage gives back what SealMessage was given for that name.
func (k Keys) OpenMessage(name string, box []byte) ([]byte, error) {
	locks, err := k.messages(name)
	if err != nil {
		return nil, err
	}
	return locks.open(box)
}

func (k Keys) messages(name string) (locks, error) {
	return each(k, func(secret []byte) (lock, error) { return newLock(secret, binding{"message", name}) })
}
