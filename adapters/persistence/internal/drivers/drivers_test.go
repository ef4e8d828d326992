package drivers_test

import (
	"database/sql"
	"errors"
	"net/url"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"gorm.io/gorm"

	"github.com/pasteport/pasteport/adapters/persistence"
	"github.com/pasteport/pasteport/adapters/persistence/internal/drivers"
	"github.com/pasteport/pasteport/features/suite"
)

func TestDrivers(t *testing.T) {
	suite.Run(t, "Drivers")
}

var _ = Describe("Opening a store on a database server", func() {
	DescribeTable("says which package has the driver that a program does not link", func(address, wanted string) {
		_, err := persistence.OpenServer(address, persistence.ServerOptions{SecretFile: "unused"})
		Expect(err).To(MatchError(
			And(ContainSubstring(`import _ "github.com/pasteport/pasteport/adapters/persistence/`+wanted+`"`),
				Not(ContainSubstring("s3cret")))))
	},
		Entry("for PostgreSQL", "postgres://pasteport:s3cret@127.0.0.1:1/pasteport", "postgres"),
		Entry("for MariaDB", "mariadb://pasteport:s3cret@127.0.0.1:1/pasteport", "mysql"),
	)

	It("asks whichever driver an error is of", func() {
		known := errors.New("known")
		drivers.ByScheme["made-up"] = drivers.Driver{
			Open: func(*url.URL) (*sql.DB, gorm.Dialector, error) { return nil, nil, known },
			Code: func(err error) string {
				if errors.Is(err, known) {
					return "4711"
				}
				return ""
			},
		}
		Expect(drivers.Code(errors.Join(errors.New("other"), known))).To(Equal("4711"))
		Expect(drivers.Code(errors.New("other"))).To(BeEmpty())
	})
})
