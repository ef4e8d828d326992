package seal

// SealMessage seals a message from one replica to another under a name that both use. Only replicas
// with the same server secret can create or open messages, and a message opens only under its name.
func (k KeyRing) SealMessage(name string, plain []byte) ([]byte, error) {
	sealers, err := k.messageSealers(name)
	if err != nil {
		return nil, err
	}
	return sealers.Seal(plain), nil
}

// OpenMessage opens a message that was sealed under the name.
func (k KeyRing) OpenMessage(name string, box []byte) ([]byte, error) {
	sealers, err := k.messageSealers(name)
	if err != nil {
		return nil, err
	}
	return sealers.Open(box)
}

// messageSealers caches nothing, because the number of names is unbounded.
func (k KeyRing) messageSealers(name string) (Sealers, error) {
	return forEachSecret(k, func(secret []byte) (Sealer, error) {
		return deriveSealer(secret, Binding{"message", name})
	})
}
