package secretfile

import (
	"fmt"
	"os"
)

// Protect makes a file readable by its owner only (H7); a copy that was restored may have lost that.
func Protect(path string) error {
	found, err := os.Stat(path)
	if err != nil || found.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("others can read it, and this user cannot change that: %w", err)
	}
	return nil
}

// ProtectShared is Protect for a file that replicas share. A mounted file, such as a Kubernetes Secret, belongs to root and cannot be changed; its
// service reads it as a member of its group.
func (f *File) ProtectShared() error {
	if found, err := os.Stat(f.path); err == nil && found.Mode().Perm()&0o027 == 0 {
		return nil
	}
	return Protect(f.path)
}
