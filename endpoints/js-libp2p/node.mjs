// The libp2p node of either side: one transport, one security layer, one multiplexer.
import { createLibp2p } from 'libp2p'

const imports = {
  transport: {
    tcp: async () => (await import('@libp2p/tcp')).tcp(),
    ws: async () => (await import('@libp2p/websockets')).webSockets(),
    'quic-v1': async () => (await import('@chainsafe/libp2p-quic')).quic()
  },
  security: {
    noise: async () => (await import('@chainsafe/libp2p-noise')).noise(),
    tls: async () => (await import('@libp2p/tls')).tls()
  },
  muxer: {
    yamux: async () => (await import('@libp2p/yamux')).yamux(),
    // By default, a sixth stream within a second ends the connection.
    mplex: async () => (await import('@libp2p/mplex')).mplex({ disconnectThreshold: Number.MAX_SAFE_INTEGER })
  }
}

/** Creates and starts a node that has none of libp2p's services; `listen` is the address to bind to. */
export async function createNode (options) {
  const standalone = options.transport === 'quic-v1'
  const node = await createLibp2p({
    addresses: { listen: options.listen == null ? [] : [options.listen] },
    transports: [await select('transport', options)],
    connectionEncrypters: standalone ? [] : [await select('security', options)],
    streamMuxers: standalone ? [] : [await select('muxer', options)],
    // By default, a sixth connection of a host within a second is refused.
    connectionManager: {
      dialTimeout: options.timeout,
      addressDialTimeout: options.timeout,
      inboundConnectionThreshold: Number.MAX_SAFE_INTEGER
    },
    connectionMonitor: { enabled: false }
  })
  // A peer that does not answer must not keep the process.
  const close = () => Promise.race([node.stop(), new Promise((resolve) => setTimeout(resolve, 1000))])
  return { node, close }
}

async function select (layer, options) {
  const load = imports[layer][options[layer]]
  if (load == null) {
    const problem = options[layer] == null ? `missing --${layer}` : `unknown ${layer} \`${options[layer]}\``
    throw new Error(`${problem}: expected ${Object.keys(imports[layer]).join(' or ')}`)
  }
  return load()
}

/** The protocols of a connection in the names of the flags: `/tls/1.0.0` is `tls`. */
export function negotiated (connection, options) {
  const name = (protocol) => protocol?.split('/')[1]
  const names = connection.remoteAddr.getComponents().map((component) => component.name)
  if (names.includes('quic-v1')) return { transport: 'quic-v1' }
  // A listener does not learn more from the connection than that it came over TCP: it has one transport only.
  const transport = connection.direction === 'outbound' ? (names.includes('ws') ? 'ws' : 'tcp') : options.transport
  return { transport, security: name(connection.encryption), muxer: name(connection.multiplexer) }
}
