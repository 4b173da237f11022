// js-libp2p as an endpoint of a matrix: `listen` serves /perf/1.0.0, `dial` measures transfers with it.
// endpoints/README.md describes the arguments and the lines that both print.
import { parseArgs } from 'node:util'
import { isIPv6 } from 'node:net'
import { multiaddr } from '@multiformats/multiaddr'
import { Counts, PERF, answer, request, requestTimed } from './perf.mjs'
import { createNode, negotiated } from './node.mjs'

const seconds = () => performance.now() / 1000
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

async function listen (options) {
  const { node, close } = await createNode({ ...options, listen: listenAddress(options) })
  node.addEventListener('connection:open', ({ detail: connection }) => print({ negotiated: negotiated(connection, options) }))
  await node.handle(PERF, async (stream) => {
    const counts = new Counts()
    let error = null
    try {
      await answer(stream, counts)
    } catch (caught) {
      error = caught.message
      stream.abort(caught)
    }
    print({ received: counts.received, sent: counts.sent, error })
  })
  process.on('SIGTERM', () => { close().finally(() => process.exit(0)) })
  // 0.0.0.0 is reported as the address of each interface.
  const components = node.getMultiaddrs()[0].getComponents()
  components[0] = { ...components[0], value: options.host, bytes: undefined }
  print({ listening: multiaddr(components).toString() })
}

function listenAddress ({ transport, host, port }) {
  const address = `/${isIPv6(host) ? 'ip6' : 'ip4'}/${host}`
  const suffixes = { tcp: `/tcp/${port}`, ws: `/tcp/${port}/ws`, 'quic-v1': `/udp/${port}/quic-v1` }
  return address + suffixes[transport]
}

async function dial (options) {
  const [send, receive, iterations] = [options.send, options.receive, options.iterations].map(Number)
  const milliseconds = Number(options.timeout) * 1000
  const time = fixedTime(options)
  const { node, close } = await createNode({ ...options, timeout: milliseconds })
  const times = { t_dial: seconds(), t_connect: null }
  let connection
  let failure = null
  try {
    connection = await node.dial(multiaddr(options.address), { signal: AbortSignal.timeout(milliseconds) })
    times.t_connect = seconds()
    print({ negotiated: negotiated(connection, options) })
  } catch (caught) {
    failure = caught.message
  }
  for (let i = 0; i < iterations; i++) {
    const counts = new Counts()
    const line = { i, sent: 0, received: 0, ...times, t_open: null, t_first: null, t_last: null, error: failure }
    if (failure == null) {
      line.t_open = seconds()
      try {
        const report = () => print({ i, at: seconds(), sent: counts.sent, received: counts.received })
        await transfer(connection, milliseconds, (stream) => time == null
          ? requestAll(stream, send, receive, counts)
          : requestTimed(stream, time, counts, report))
        line.t_last = seconds()
      } catch (caught) {
        line.error = caught.message
        failure = `skipped after iteration ${i}: ${caught.message}`
      }
      Object.assign(line, { sent: counts.sent, received: counts.received })
      if (counts.first != null) line.t_first = counts.first / 1000
    }
    print(line)
  }
  await close()
  process.exit(failure == null ? 0 : 1)
}

/** The time that each transfer takes, if it is fixed. */
function fixedTime ({ duration, interval, direction }) {
  if (duration == null) return null
  if (!['upload', 'download'].includes(direction)) throw new Error('invalid --direction: expected upload or download')
  return { direction, duration: Number(duration), interval: Number(interval) }
}

async function requestAll (stream, send, receive, counts) {
  await request(stream, send, receive, counts)
  if (counts.received !== receive) throw new Error(`received ${counts.received} of ${receive} bytes`)
}

async function transfer (connection, milliseconds, run) {
  const signal = AbortSignal.timeout(milliseconds)
  const stream = await connection.newStream(PERF, { signal })
  const expire = () => stream.abort(new Error(`timed out after ${milliseconds / 1000} s`))
  signal.addEventListener('abort', expire)
  try {
    await run(stream)
  } catch (caught) {
    stream.abort(caught)
    throw caught
  } finally {
    signal.removeEventListener('abort', expire)
  }
}

const text = (fallback) => ({ type: 'string', default: fallback })
const stack = { transport: text(), security: text(), muxer: text() }
const commands = {
  listen: [listen, { ...stack, host: text('127.0.0.1'), port: text('0') }],
  dial: [dial, {
    ...stack,
    address: text(),
    send: text('0'),
    receive: text('0'),
    iterations: text('1'),
    timeout: text('60'),
    duration: text(),
    interval: text('0.1'),
    direction: text()
  }]
}

try {
  const [name, ...args] = process.argv.slice(2)
  const [command, options] = commands[name] ?? []
  if (command == null) throw new Error('usage: endpoint listen|dial --transport TRANSPORT …')
  await command(parseArgs({ args, options }).values)
} catch (error) {
  process.stderr.write(`error: ${error.message}\n`)
  process.exit(1)
}
