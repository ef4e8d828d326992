package term

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a mistake in the command line; the program exits with code 2.
type UsageError struct{ error }

// Usage marks an error as a mistake in the command line.
func Usage(err error) error { return UsageError{err} }

// Usagef is Usage for a formatted error.
func Usagef(format string, values ...any) error { return UsageError{fmt.Errorf(format, values...)} }

// NoArguments refuses arguments. The error does not contain them, because one may be a secret whose flag is missing.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument: %q takes flags only, each as --name=value", command.CommandPath())
	}
	return nil
}
