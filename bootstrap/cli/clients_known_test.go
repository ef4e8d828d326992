package cli

import (
	"errors"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/features/suite"
)

func TestCLI(t *testing.T) {
	suite.Run(t, "Command line")
}

var _ = DescribeTable("What a host answers to the fetch of a document", Label("T4"),
	func(answer bootstrap.ClientAnswer, err error, expected string) {
		Expect(fetchResult(answer, err)).To(Equal(expected))
	},
	Entry("a document", bootstrap.ClientAnswer{Status: 200}, nil, "can be fetched"),
	Entry("a refusal", bootstrap.ClientAnswer{Status: 403}, errors.New("no"), "blocked with status 403"),
	Entry("too many requests", bootstrap.ClientAnswer{Status: 429}, errors.New("no"), "blocked with status 429"),
	Entry("a bot challenge", bootstrap.ClientAnswer{Status: 503, Mitigated: "challenge"}, errors.New("no"),
		"blocked with status 503"),
	Entry("another error", bootstrap.ClientAnswer{Status: 404}, errors.New("oauth: not found"), "not found"),
)
