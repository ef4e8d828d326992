package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

// SelfSigned returns a new certificate for an address, valid for a year.
func SelfSigned(address net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{address},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(encoded)
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key, Leaf: leaf}, err
}
