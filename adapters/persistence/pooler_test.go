package persistence

import (
	"net"

	"github.com/jackc/pgx/v5/pgproto3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pool answers like a pooler that gives each transaction another connection of the server: simple
// queries work, prepared statements are unknown.
func pool(conn net.Conn) {
	defer conn.Close()
	server := pgproto3.NewBackend(conn, conn)
	if _, err := server.ReceiveStartupMessage(); err != nil {
		return
	}
	ready := func() {
		server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = server.Flush()
	}
	server.Send(&pgproto3.AuthenticationOk{})
	ready()
	for {
		message, err := server.Receive()
		if err != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Query:
			server.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("off")}}})
			server.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("off")}})
			server.Send(&pgproto3.CommandComplete{CommandTag: []byte("SHOW")})
			ready()
		case *pgproto3.Parse:
			server.Send(&pgproto3.ErrorResponse{Code: "42P05", Message: "prepared statement already exists"})
		case *pgproto3.Sync:
			ready()
		}
	}
}

var _ = Describe("A pooler in front of PostgreSQL that knows no prepared statements", func() {
	It("is named with the option that helps, for a command too", func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go pool(conn)
			}
		}()
		_, err = OpenExisting("postgres://me@"+listener.Addr().String()+"/db?sslmode=disable",
			ServerOptions{SecretFile: "unused"})
		Expect(err).To(MatchError(And(ContainSubstring("prepared statement already exists"),
			ContainSubstring("add default_query_exec_mode=exec to the address"),
			Not(ContainSubstring("it is not a database of Pasteport")))))
	})
})
