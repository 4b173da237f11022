// The protocol /perf/1.0.0 over one stream.
export const PERF = '/perf/1.0.0'

const BUFFER = 64 * 1024
/** Bytes after which a sender lets the process do everything else. */
const YIELD = 16 * BUFFER
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
  const sendAll = async () => {
    await sendHeader(stream, BigInt(receive))
    await sendPayload(stream, send, counts)
  }
  await Promise.all([sendAll(), ended])
}

/** What a dialer asks for that ends the transfer itself. */
const UNLIMITED = 2n ** 64n - 1n

/**
 * Sends payload until the time is over and waits for the end, or resets what it asked for when the time is over. `report`
 * is called from time to time, and a last time when the time is over.
 */
export async function requestTimed (stream, { direction, duration, interval }, counts, report) {
  const end = performance.now() + duration * 1000
  let due = performance.now() + interval * 1000
  // Not by a timer alone: it waits while a stream is busy.
  const tick = () => {
    if (performance.now() < due) return
    report()
    due = performance.now() + interval * 1000
  }
  const ticker = setInterval(tick, interval * 1000)
  const ended = receiveAll(stream, (data) => { count(counts, data.byteLength); tick() })
  try {
    if (direction === 'download') await download(stream, end, ended, report)
    else await Promise.all([upload(stream, end, counts, tick, report), ended])
  } finally {
    clearInterval(ticker)
  }
}

async function upload (stream, end, counts, tick, report) {
  await sendHeader(stream, 0n)
  while (performance.now() < end) {
    await sendBlock(stream, BUFFER, counts)
    tick()
  }
  report()
  await stream.close()
}

async function download (stream, end, ended, report) {
  const over = new Promise((resolve) => setTimeout(resolve, end - performance.now(), true))
  await sendHeader(stream, UNLIMITED)
  await Promise.race([stream.close(), over])
  if (!await Promise.race([over, ended])) throw new Error('the transfer ended before its time')
  report()
  ended.catch(() => {}) // what the reset does to it
  stream.abort(new Error('the time is over'))
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
  const requested = new DataView(header.buffer).getBigUint64(0)
  if (requested === UNLIMITED) await sendUnlimited(stream, counts)
  else await sendPayload(stream, Number(requested), counts)
}

/** Sends until the dialer takes no more, which is the regular end. */
async function sendUnlimited (stream, counts) {
  try {
    while (stream.status === 'open') await sendBlock(stream, BUFFER, counts)
  } catch {}
}

function count (counts, size) {
  counts.first ??= performance.now()
  counts.received += size
}

/** Sends the number of bytes that the dialer asks for. */
async function sendHeader (stream, requested) {
  const header = new Uint8Array(8)
  new DataView(header.buffer).setBigUint64(0, requested)
  if (!stream.send(header)) await drained(stream)
}

/** Sends payload and closes the stream for writing. */
async function sendPayload (stream, bytes, counts) {
  while (counts.sent < bytes) await sendBlock(stream, Math.min(BUFFER, bytes - counts.sent), counts)
  await stream.close()
}

/** Sends a block, and waits until the stream takes more. */
async function sendBlock (stream, size, counts) {
  const writable = stream.send(size === BUFFER ? payload : payload.subarray(0, size))
  counts.sent += size
  if (!writable) await drained(stream)
  // A stream that always takes more would keep the process from sending it, and from seeing its end.
  if (counts.sent % YIELD < size) await new Promise(setImmediate)
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
