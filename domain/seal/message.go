package seal

// SealMessage seals a message of one replica for another, under the receiver's name. Only a replica with the server secret can make or read
// one, and only under that name (R3).
func (k KeyRing) SealMessage(name string, plain []byte) ([]byte, error) {
	sealers, err := k.messages(name)
	if err != nil {
		return nil, err
	}
	return sealers.Seal(plain), nil
}

// OpenMessage returns the message that SealMessage sealed under the name.
func (k KeyRing) OpenMessage(name string, box []byte) ([]byte, error) {
	sealers, err := k.messages(name)
	if err != nil {
		return nil, err
	}
	return sealers.Open(box)
}

// messages derives anew each time, because the names are many.
func (k KeyRing) messages(name string) (Sealers, error) {
	return forEachSecret(k, func(secret []byte) (Sealer, error) { return deriveSealer(secret, Binding{"message", name}) })
}
