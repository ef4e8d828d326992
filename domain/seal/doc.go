// Package seal derives keys from the server secret, and encrypts and authenticates data with them.
// Start reading at KeyRing.
//
// A KeyRing reads the server secrets from a SecretKeeper and derives one key for each purpose from
// each secret, with HKDF-SHA256 (RFC 5869). New boxes and tags use the newest secret. Those of a
// replaced secret stay valid while the keeper still returns it. A KeyRing provides
//
//	Sealers      encrypt boxes with AES-256-GCM, for one purpose and one owner: browser forms,
//	             messages between replicas, and with HolderSealers data that only the holder of a
//	             token can open
//	PairSealers  encrypt boxes for the holder of a key, knowing only its public half
//	Tag          a keyed hash of a text, such as a session ID with its owner
//	Fingerprint  a short keyed hash, by which a store finds the grants of a host token
//
// A box is a random nonce followed by the ciphertext. Its Binding, the purpose and the owner, is
// part of its key and of its associated data, so that a box does not open for another purpose or
// owner.
package seal
