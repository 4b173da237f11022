// go-libp2p as an endpoint of a matrix: `listen` serves /perf/1.0.0, `dial` measures transfers with it.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	"github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"
	"github.com/quic-go/quic-go"
	"weighbridge.local/endpoint"
)

const perf = protocol.ID("/perf/1.0.0")

func main() {
	endpoint.Main(endpoint.Implementation{
		Listen:              listen,
		Prepare:             prepare,
		ConnectsPerTransfer: func(endpoint.Options) bool { return false },
	})
}

func listen(ctx context.Context, options endpoint.Options) error {
	node, err := newNode(options)
	if err != nil {
		return err
	}
	defer node.Close()
	node.Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, connection network.Conn) {
		endpoint.PrintNegotiated(negotiated(connection))
	}})
	muxer := multistream.NewMultistreamMuxer[protocol.ID]()
	muxer.AddHandler(perf, nil)
	node.SetStreamHandler(func(stream network.Stream) {
		if _, _, err := muxer.Negotiate(stream); err != nil {
			fmt.Fprintln(os.Stderr, "stream:", err)
			_ = stream.Reset()
			return
		}
		var counts endpoint.Counts
		err := endpoint.Answer(stream, &counts)
		finish(stream, err)
		endpoint.PrintServed(counts, err)
	})
	host, err := multiaddr.NewMultiaddr(listenAddress(options))
	if err != nil {
		return err
	}
	if err := node.Listen(host); err != nil {
		return err
	}
	endpoint.PrintListening(fmt.Sprintf("%s/p2p/%s", node.ListenAddresses()[0], node.LocalPeer()))
	<-ctx.Done()
	return nil
}

func listenAddress(options endpoint.Options) string {
	version := "ip4"
	if strings.Contains(options.Host, ":") {
		version = "ip6"
	}
	format := map[string]string{"tcp": "/%s/%s/tcp/%d", "ws": "/%s/%s/tcp/%d/ws", "quic-v1": "/%s/%s/udp/%d/quic-v1"}
	return fmt.Sprintf(format[options.Transport], version, options.Host, options.Port)
}

func prepare(options endpoint.Options) (endpoint.Connect, error) {
	info, err := peer.AddrInfoFromString(options.Address)
	if err != nil {
		return nil, err
	}
	node, err := newNode(options)
	if err != nil {
		return nil, err
	}
	node.Peerstore().AddAddrs(info.ID, info.Addrs, peerstore.PermanentAddrTTL)
	return func(ctx context.Context) (endpoint.Connection, error) {
		conn, err := node.DialPeer(ctx, info.ID)
		if err != nil {
			return nil, err
		}
		return &connection{node, conn}, nil
	}, nil
}

type connection struct {
	node *swarm.Swarm
	conn network.Conn
}

func (c *connection) Negotiated() endpoint.Negotiated { return negotiated(c.conn) }

func (c *connection) Transfer(ctx context.Context, options endpoint.Options, counts *endpoint.Counts) error {
	stream, err := c.conn.NewStream(ctx)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = stream.SetDeadline(deadline)
	}
	if err = multistream.SelectProtoOrFail(perf, stream); err == nil {
		err = endpoint.Request(ctx, stream, options, counts)
	}
	if options.IsTimedDownload() {
		// Closing it would leave the listener waiting for a window.
		_ = stream.Reset()
	} else {
		finish(stream, err)
	}
	return err
}

func (c *connection) Close() { c.node.Close() }

func finish(stream network.Stream, err error) {
	if err != nil {
		_ = stream.Reset()
	} else {
		_ = stream.Close()
	}
}

// negotiated names the protocols of a connection as the flags do: /tls/1.0.0 is tls.
func negotiated(connection network.Conn) endpoint.Negotiated {
	state := connection.ConnState()
	name := func(id protocol.ID) string { return strings.Split(strings.TrimPrefix(string(id), "/"), "/")[0] }
	names := endpoint.Negotiated{Transport: state.Transport, Security: name(state.Security), Muxer: name(state.StreamMultiplexer)}
	switch names.Transport {
	case "websocket":
		names.Transport = "ws"
	case "quic", "quic-v1":
		names = endpoint.Negotiated{Transport: "quic-v1"}
	}
	return names
}

// newNode creates a swarm with one transport, security layer and multiplexer, and none of the services of a host.
func newNode(options endpoint.Options) (*swarm.Swarm, error) {
	key, public, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, err
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		return nil, err
	}
	peers, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	if err := peers.AddPrivKey(id, key); err != nil {
		return nil, err
	}
	if err := peers.AddPubKey(id, public); err != nil {
		return nil, err
	}
	limits := []swarm.Option{}
	if options.Timeout > 0 {
		limits = append(limits, swarm.WithDialTimeout(options.Timeout), swarm.WithDialTimeoutLocal(options.Timeout))
	}
	node, err := swarm.NewSwarm(id, peers, eventbus.NewBus(), limits...)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(options, key)
	if err == nil {
		err = node.AddTransport(transport)
	}
	if err != nil {
		node.Close()
		return nil, err
	}
	return node, nil
}

func newTransport(options endpoint.Options, key crypto.PrivKey) (transport.Transport, error) {
	switch options.Transport {
	case "quic-v1":
		connections, err := quicreuse.NewConnManager(quic.StatelessResetKey(randomKey()), quic.TokenGeneratorKey(randomKey()))
		if err != nil {
			return nil, err
		}
		return libp2pquic.NewTransport(key, connections, nil, nil, nil)
	case "tcp":
		upgrader, err := newUpgrader(options, key)
		if err != nil {
			return nil, err
		}
		return tcp.NewTCPTransport(upgrader, nil, nil)
	case "ws":
		upgrader, err := newUpgrader(options, key)
		if err != nil {
			return nil, err
		}
		return websocket.New(upgrader, nil, nil)
	}
	_, err := endpoint.Choose("transport", options.Transport, map[string]bool{"tcp": true, "quic-v1": true, "ws": true})
	return nil, err
}

func newUpgrader(options endpoint.Options, key crypto.PrivKey) (transport.Upgrader, error) {
	muxer, err := endpoint.Choose("muxer", options.Muxer, map[string]upgrader.StreamMuxer{
		"yamux": {ID: yamux.ID, Muxer: yamux.DefaultTransport},
	})
	if err != nil {
		return nil, err
	}
	muxers := []upgrader.StreamMuxer{muxer}
	create, err := endpoint.Choose("security", options.Security, map[string]func() (sec.SecureTransport, error){
		"noise": func() (sec.SecureTransport, error) { return noise.New(noise.ID, key, muxers) },
		"tls":   func() (sec.SecureTransport, error) { return libp2ptls.New(libp2ptls.ID, key, muxers) },
	})
	if err != nil {
		return nil, err
	}
	security, err := create()
	if err != nil {
		return nil, err
	}
	return upgrader.New([]sec.SecureTransport{security}, muxers, nil, nil, nil)
}

func randomKey() (key [32]byte) {
	_, _ = rand.Read(key[:])
	return key
}
