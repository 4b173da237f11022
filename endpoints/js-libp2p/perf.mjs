// The protocol /perf/1.0.0 over one stream.
export const PERF = '/perf/1.0.0'

const BUFFER = 64 * 1024
const payload = new Uint8Array(BUFFER)

/** Bytes of payload that were moved so far, and when the first one arrived, in milliseconds. */
export class Counts {
  sent = 0
  received = 0
  first = null
}

/** Sends the header and the payload, and reads the answer to its end. */
export async function request (stream, send, receive, counts) {
  const ended = receiveAll(stream, (data) => count(counts, data.byteLength))
  const header = new Uint8Array(8)
  new DataView(header.buffer).setBigUint64(0, BigInt(receive))
  await Promise.all([sendAll(stream, header, send, counts), ended])
}

/** Reads a request to its end and answers it. */
export async function answer (stream, counts) {
  const header = new Uint8Array(8)
  let filled = 0
  await receiveAll(stream, (data) => {
    let size = data.byteLength
    if (filled < header.length) {
      const part = data.subarray(0, header.length - filled)
      header.set(part, filled)
      filled += part.byteLength
      size -= part.byteLength
    }
    if (size > 0) count(counts, size)
  })
  if (filled < header.length) throw new Error('the stream ended within the header')
  await sendAll(stream, new Uint8Array(0), Number(new DataView(header.buffer).getBigUint64(0)), counts)
}

function count (counts, size) {
  counts.first ??= performance.now()
  counts.received += size
}

/** Sends a prefix and `bytes` of payload, no faster than the stream takes them, and closes the stream for writing. */
async function sendAll (stream, prefix, bytes, counts) {
  if (prefix.byteLength > 0 && !stream.send(prefix)) await drained(stream)
  while (counts.sent < bytes) {
    const size = Math.min(BUFFER, bytes - counts.sent)
    const writable = stream.send(size === BUFFER ? payload : payload.subarray(0, size))
    counts.sent += size
    if (!writable) await drained(stream)
  }
  await stream.close()
}

/** Waits until the stream's buffer is empty: a later `onDrain()` of the stream may resolve at once. */
function drained (stream) {
  return new Promise((resolve, reject) => {
    const done = (error) => {
      stream.removeEventListener('drain', check)
      stream.removeEventListener('close', closed)
      error == null ? resolve() : reject(error)
    }
    // The stream itself continues to send in a microtask, and may fill up again.
    const check = () => queueMicrotask(() => { if (!stream.writableNeedsDrain) done() })
    const closed = (event) => done(event.error ?? new Error('the stream was closed'))
    stream.addEventListener('drain', check)
    stream.addEventListener('close', closed)
    check()
  })
}

/** Passes all data to `consume` until the remote closes the stream for writing. */
function receiveAll (stream, consume) {
  return new Promise((resolve, reject) => {
    stream.addEventListener('message', ({ data }) => consume(data))
    stream.addEventListener('end', () => { if (stream.status !== 'aborted' && stream.status !== 'reset') resolve() })
    stream.addEventListener('close', ({ error }) => { error == null ? resolve() : reject(error) })
    if (stream.readableEnded) resolve()
  })
}
