package application

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

var _ = DescribeTable("Refusing a request because a document or key set is not fetched now, with the time to wait",
	Label("C45", "D33"),
	func(refuse func(error) error, err error, rule string) {
		var refusal *oauth.Error
		Expect(errors.As(refuse(client.RetryableAfter(7*time.Second, err)), &refusal)).To(BeTrue())
		Expect(refusal.RetryAfter).To(Equal(7 * time.Second))
		Expect(refusal.Rule).To(Equal(rule))
		Expect(refusal).To(MatchError(err))
		Expect(errors.As(refuse(err), &refusal)).To(BeTrue())
		Expect(refusal.RetryAfter).To(BeZero())
	},
	Entry("a document beyond the budget", clientRefusal, client.ErrBudget, "C21"),
	Entry("keys beyond the budget", assertionRefusal, client.ErrBudget, "D33"),
)
