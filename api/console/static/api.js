// The public API of the service: requests, problems, pages and event streams.

export class Problem extends Error {
  constructor(status, code, detail, reasons = []) {
    super(detail)
    this.status = status
    this.code = code
    this.reasons = reasons
  }
}

export const signedOut = new EventTarget()

const HEADERS = { 'X-Anamnesis-Console': '1' }

/** An address of the service, which may stand below a path of a proxy's. */
export const rooted = (path) => new URL(`../../${path.replace(/^\//, '')}`, import.meta.url)

export async function send(method, path, { body, query, headers, signal, raw, keepalive } = {}) {
  const address = rooted(path)
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') address.searchParams.set(name, value)
  }
  const isJson = body !== undefined && !(body instanceof Blob) && typeof body !== 'string'
  let response
  try {
    response = await fetch(address, {
      method,
      signal,
      keepalive,
      headers: { ...HEADERS, ...(isJson ? { 'Content-Type': 'application/json' } : {}), ...headers },
      body: isJson ? JSON.stringify(body) : body,
    })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Problem(0, 'unreachable', '')
  }
  if (!response.ok) throw await problemOf(response, path)
  if (raw) return response
  if (response.status === 204) return null
  return response.json()
}

async function problemOf(response, path) {
  let problem = {}
  try {
    problem = await response.json()
  } catch {
    // A proxy's own page: the status has to do.
  }
  if (response.status === 401 && path !== '/console/session') signedOut.dispatchEvent(new Event('signed-out'))
  return new Problem(response.status, problem.code ?? '', problem.detail ?? response.statusText, problem.reasons)
}

export const get = (path, query, options) => send('GET', path, { query, ...options })
export const post = (path, body, options) => send('POST', path, { body, ...options })
export const put = (path, body, options) => send('PUT', path, { body, ...options })
export const patch = (path, body, options) => send('PATCH', path, { body, ...options })
export const remove = (path, query) => send('DELETE', path, { query })

export const userPath = (user, ...parts) =>
  ['/api/v1/users', encodeURIComponent(user), ...parts.map(encodeURIComponent)].join('/')

/** Every item of a paged list, up to `most`. */
export async function all(path, query = {}, most = 2000) {
  const items = []
  let after
  do {
    const page = await get(path, { ...query, after, limit: 200 })
    items.push(...page.items)
    after = page.next
  } while (after && items.length < most)
  return items
}

/** The parts of a response between separators, as they come; what follows the last one is cut off. */
async function* parts(response, separator) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let buffer = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      buffer += value.replaceAll('\r', '')
      let from = 0
      for (let end; (end = buffer.indexOf(separator, from)) >= 0; from = end + separator.length) yield buffer.slice(from, end)
      buffer = buffer.slice(from)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** The events of a response of type `text/event-stream`, each `{id, status, content}`, as they come. */
export async function* events(response) {
  for await (const frame of parts(response, '\n\n')) {
    const event = eventOf(frame)
    if (event) yield event
  }
}

/** The lines of a response, each a JSON object, as they come. */
export async function* jsonLines(response) {
  for await (const line of parts(response, '\n')) yield JSON.parse(line)
}

function eventOf(frame) {
  let id = 0
  let data = ''
  for (const line of frame.split('\n')) {
    if (line.startsWith('id: ')) id = Number(line.slice(4))
    else if (line.startsWith('data: ')) data += line.slice(6)
  }
  return data ? { id, ...JSON.parse(data) } : null
}

/** Save what a path answers as a file. */
export async function download(path, name) {
  const response = await send('GET', path, { raw: true })
  saveAs(await response.blob(), name)
}

export function saveAs(blob, name) {
  const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
