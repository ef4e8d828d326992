// Package seal derives keys from the server secret and seals with them.
//
// A KeyRing reads the server secrets from a SecretKeeper and derives one key for each purpose from each secret, with HKDF-SHA256. The
// newest secret seals and names; every secret that the keeper still keeps opens and recognizes. The ring makes
//
//	Sealers      boxes under AES-256-GCM, for one purpose and one owner: forms of a browser, messages between replicas, and with HolderSealers
//	             what only the holder of a token can open
//	Tag          a keyed hash of a text, such as the name of a session that is bound to its owner
//	Fingerprint  a short keyed hash, by which a store finds the grants of a host token
//
// A box carries its random nonce. What a box is and whose it is (Binding) goes into its key and its authenticated data, so a box that is
// taken for another one does not open.
package seal
