package engines

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Cluster is one database on several servers.
type Cluster struct{ Nodes []*Server }

const nodes = 3

// Galera starts a MariaDB Galera cluster of three nodes.
func Galera(ctx context.Context) (*Cluster, error) {
	provider, err := find("/usr/lib/galera/libgalera_smm.so")
	if err != nil {
		return nil, err
	}
	var members []string
	for range nodes {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("127.0.0.1:%d", port))
	}
	c := &Cluster{}
	for _, member := range members {
		settings, err := replicating(provider, member)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		node, err := MariaDB(ctx, append(settings, c.joining(members))...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, node)
	}
	founder := c.Nodes[0]
	founder.flags[len(founder.flags)-1] = "--" + c.joining(members) // from its next start on
	return c, nil
}

// joining is the setting with which a node joins the others, or founds the cluster.
func (c *Cluster) joining(members []string) string {
	if len(c.Nodes) == 0 {
		members = nil
	}
	return "wsrep-cluster-address=gcomm://" + strings.Join(members, ",")
}

// replicating returns the settings of a node that listens for other nodes at an address.
func replicating(provider, address string) ([]string, error) {
	incremental, incrementalErr := FreePort()
	whole, wholeErr := FreePort()
	_, port, _ := strings.Cut(address, ":")
	return []string{
		"binlog-format=ROW", "innodb-autoinc-lock-mode=2", "wsrep-on=ON", "wsrep-provider=" + provider,
		"wsrep-node-address=" + address,
		"wsrep-sst-method=rsync", fmt.Sprintf("wsrep-sst-receive-address=127.0.0.1:%d", whole),
		fmt.Sprintf("wsrep-provider-options=base_port=%s;gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d",
			port, address, incremental),
	}, errors.Join(incrementalErr, wholeErr)
}

// Database creates an empty database and returns its URL for each node: that node comes first, then
// the others.
func (c *Cluster) Database(ctx context.Context) (urls []string, err error) {
	url, err := c.Nodes[0].Database(ctx)
	if err != nil {
		return nil, err
	}
	name := c.Nodes[0].nameIn(url)
	for first := range c.Nodes {
		var hosts []string
		for i := range c.Nodes {
			hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", c.Nodes[(first+i)%len(c.Nodes)].port))
		}
		urls = append(urls, "mysql://root@"+strings.Join(hosts, ",")+"/"+name)
	}
	return urls, nil
}

// Close kills the nodes and removes their folders.
func (c *Cluster) Close() (err error) {
	for _, node := range c.Nodes {
		err = errors.Join(err, node.Close())
	}
	return err
}
