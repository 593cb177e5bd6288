// A conversation as it goes on: its turns, those under way among them, and what stands in their place on branches.

import { all, events, get, post, Problem, send, userPath } from '../api.js'
import { currentLanguage } from '../i18n.js'

const UNDER_WAY = new Set(['sending', 'waiting', 'running'])
const LOOKS_AT_MEMORY_MS = [1500, 5000, 12_000] // after an answer: the memory agent works behind it
const TELLING = /^(core_memory_(?!delete|rollback)|episode_insert|memory_command)/

const tabs = new BroadcastChannel('anamnesis') // other tabs of this browser

export const isUnderWay = (turn) => UNDER_WAY.has(turn.status)

export class Conversation extends EventTarget {
  constructor(user, { temporary = false } = {}) {
    super()
    this.user = user
    this.temporary = temporary
    this.id = null
    this.stored = null
    this.turns = []
    this.branches = []
    this.excluded = [] // what it never uses
    this.documents = [] // that were given in it
    this.session = randomName() // its name, unless it is stored under another
    this.closing = new AbortController()
    this.unsent = null // a message of which it is not known whether it arrived, with its idempotency key
    tabs.addEventListener('message', ({ data }) => this.#changedElsewhere(data), { signal: this.closing.signal })
  }

  /** Another tab has asked something in this conversation: read it again, once nothing is under way here. */
  async #changedElsewhere(id) {
    if (id !== this.id) return
    this.stale = this.underWay
    if (!this.stale) await this.load(id).catch(() => {})
  }

  changed() {
    this.dispatchEvent(new Event('change'))
  }

  /** Read it, and follow what is under way in it. */
  async load(id) {
    const path = `/api/v1/conversations/${id}`
    const [stored, messages, turns] = await Promise.all([
      get(path),
      all(`${path}/messages`, {}, 5000),
      all(`${path}/turns`, {}, 5000),
    ])
    this.id = id
    this.stale = false
    this.stored = stored
    this.user = stored.user_id
    const known = new Map(turns.filter((turn) => !turn.branch_id).map((turn) => [turn.id, turn]))
    const shown = new Map()
    for (const message of messages) {
      const turn = shown.get(message.turn_id) ?? this.#turnOf(message, known.get(message.turn_id))
      shown.set(message.turn_id, turn)
      if (message.role === 'assistant') Object.assign(turn, { answer: message.content, at: message.created_at })
    }
    this.turns = [...shown.values()]
    for (const turn of this.turns.filter(isUnderWay)) this.#follow(turn, null)
    this.changed()
    await Promise.all([this.loadBranches(), this.loadExcluded(), this.loadDocuments()])
  }

  #turnOf(message, row) {
    const images = message.parts.filter((part) => part.type === 'image_url').map((part) => part.image_url.url)
    return {
      id: message.turn_id,
      key: message.turn_id,
      message: message.role === 'user' ? message.content : '',
      asked_at: message.created_at,
      images,
      status: row?.status ?? 'completed',
      answer: '',
      tools: [],
      imported: !row || Boolean(message.promise_id),
      sources: row?.sources ?? [],
      changes: row?.memory_changes ?? [],
      degraded: row?.degraded ?? [],
      error: row?.error ?? null,
      timings: row?.timings ?? null,
      usage: row?.usage ?? null,
      feedback: row?.feedback?.rating ?? null,
    }
  }

  /** Read a list that belongs to it, unless the caller may not. */
  async #list(name, path) {
    try {
      this[name] = (await get(path)).items
    } catch (error) {
      if (error.status !== 403) throw error
    }
    this.changed()
  }

  get documentsPath() {
    return userPath(this.user, 'sessions', this.stored?.session_id ?? this.session, 'documents')
  }

  loadBranches = async () => this.id && !this.temporary && this.#list('branches', `/api/v1/conversations/${this.id}/branches`)
  loadExcluded = () => this.#list('excluded', `/api/v1/conversations/${this.id}/exclusions`)
  loadDocuments = async () => !this.temporary && this.#list('documents', this.documentsPath)

  /** The versions of a turn: its own id and those of the branches in whose place it stands, oldest first. */
  versions(place) {
    const before = place > 0 ? this.turns[place - 1].id : null
    const beside = this.branches.filter((branch) => branch.after_turn_id === before && branch.first_turn_id !== this.turns[place].id)
    return [
      { id: this.turns[place].id, branch: null },
      ...beside.map((branch) => ({ id: branch.first_turn_id, branch: branch.id })),
    ].sort((one, other) => (one.id < other.id ? -1 : 1))
  }

  async switchTo(branchId) {
    await post(`/api/v1/conversations/${this.id}/branches/${branchId}/switch`)
    await this.load(this.id)
  }

  get underWay() {
    return this.turns.some(isUnderWay)
  }

  /** Send a message; with `replaces`, in the place of a turn and all that follow it. */
  async ask(message, { images = [], replaces = null, without = [], interrupt = false, expert, base, space } = {}) {
    const place = replaces ? this.turns.findIndex((turn) => turn.id === replaces) : this.turns.length
    const before = this.turns
    const turn = {
      id: null, key: `new-${Math.random()}`, message, images, status: 'sending', answer: '', tools: [], sources: [],
      changes: [], degraded: [], error: null, timings: null, feedback: null, asked_at: new Date().toISOString(), fresh: true,
    }
    this.turns = [...before.slice(0, place), turn]
    this.changed()
    // Sent again after a lost connection, it is the same turn.
    if (this.unsent?.message !== message) this.unsent = { message, key: randomName() }
    let response
    try {
      response = await post('/api/v1/chat/stream', {
        user_id: this.user,
        session_id: this.stored?.session_id ?? this.session,
        message,
        images,
        approvals: true,
        timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        locale: currentLanguage() === 'zh' ? 'zh-CN' : 'en',
        on_conflict: interrupt ? 'interrupt' : 'queue',
        ...(this.temporary ? { temporary: true, earlier: earlier(before) } : {}),
        ...(!this.stored && space ? { space } : {}),
        ...(replaces ? { replaces } : {}),
        ...(without.length ? { without } : {}),
        ...(!this.stored && expert ? { expert } : {}),
        ...(base ? { kb_prefix: base } : {}),
      }, { raw: true, signal: this.closing.signal, headers: { 'Idempotency-Key': this.unsent.key } })
    } catch (error) {
      this.turns = before
      this.changed()
      throw error
    }
    await this.#follow(turn, response)
    if (this.stale && !this.underWay) await this.load(this.id)
    else if (replaces) await this.loadBranches()
  }

  async stop() {
    const turn = this.turns.find((each) => each.id && isUnderWay(each))
    if (turn) await post(`/api/v1/turns/${turn.id}/cancel`)
  }

  /** Take a turn's events to its end, over as many connections as it needs. */
  async #follow(turn, response) {
    let last = 0
    let tries = 0
    while (isUnderWay(turn) && !this.closing.signal.aborted) {
      try {
        response ??= await send('GET', `/api/v1/turns/${turn.id}/stream`, {
          headers: { 'Last-Event-ID': String(last) },
          raw: true,
          signal: this.closing.signal,
        })
        turn.lost = false
        for await (const event of events(response)) {
          last = event.id
          tries = 0
          this.#take(turn, event)
        }
      } catch (error) {
        if (this.closing.signal.aborted) return
        if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
          turn.status = 'failed'
          turn.error = { code: error.code, message: error.message }
        }
      }
      response = null
      if (!isUnderWay(turn) || this.closing.signal.aborted) break
      turn.lost = true
      this.changed()
      if (!turn.id) return this.#neverBegan(turn)
      await untilOnline(Math.min(500 * 2 ** tries++, 8000))
    }
    this.changed()
    if (turn.status === 'completed' && turn.fresh && !this.temporary) this.#watchMemory(turn)
  }

  #neverBegan(turn) {
    turn.status = 'failed'
    turn.error = { code: 'unreachable', message: '' }
    this.changed()
  }

  #take(turn, { status, content }) {
    if (status === 'token') {
      if (turn.status === 'waiting') turn.status = 'running'
      turn.answer += content
      if (turn.onText) return turn.onText(content) // shown without drawing everything again
    } else if (status === 'turn') {
      turn.id = content.turn_id
      if (turn.fresh) this.unsent = null
      turn.status = this.turns.some((other) => other !== turn && isUnderWay(other)) ? 'waiting' : 'running'
      if (!this.id) {
        this.id = content.conversation_id
        this.dispatchEvent(new Event('begun'))
      }
      if (turn.fresh && !this.temporary) tabs.postMessage(this.id)
    } else if (status === 'route_decision') turn.route = content
    else if (status === 'filler') turn.filler = content
    else if (status === 'tool_call') turn.tools = [...turn.tools, { ...content, running: true }]
    else if (status === 'approval') turn.tools = turn.tools.map((tool) => (tool.id === content.id ? { ...tool, approval: content } : tool))
    else if (status === 'tool_result') turn.tools = turn.tools.map((tool) => (tool.id === content.id ? { ...tool, ...content, running: false } : tool))
    else if (status === 'done') {
      Object.assign(turn, {
        status: 'completed', answer: content.answer, sources: content.sources, changes: content.memory_changes ?? [],
        degraded: content.degraded, timings: content.timings, usage: content.usage, at: new Date().toISOString(),
      })
    } else if (status === 'error') {
      turn.status = content.code === 'cancelled' ? 'cancelled' : content.answer || turn.answer ? 'partial' : 'failed'
      turn.error = content
      turn.answer = content.answer ?? turn.answer
    }
    const next = isUnderWay(turn) ? null : this.turns.find((other) => other.status === 'waiting')
    if (next) next.status = 'running'
    this.changed()
  }

  /** Show what the memory agent has kept of a turn, once it has. */
  async #watchMemory(turn) {
    const told = new Set(turn.changes.map((change) => change.operation_id))
    for (const wait of LOOKS_AT_MEMORY_MS) {
      await new Promise((resolve) => setTimeout(resolve, wait))
      if (this.closing.signal.aborted || document.hidden) return
      let items
      try {
        items = (await get(userPath(this.user, 'memory-operations'), { limit: 20 })).items
      } catch {
        return // without the scope, or away: the answer stands without it
      }
      const news = items.filter((each) => each.turn_id === turn.id && TELLING.test(each.type) && !told.has(each.id) && !told.has(each.trigger?.part_of))
      for (const each of news) told.add(each.id)
      if (news.length) {
        turn.changes = [...turn.changes, ...news.reverse().map((each) => ({ kind: 'noted', operation: each, operation_id: each.id, items: [] }))]
        this.changed()
      }
    }
  }

  close() {
    this.closing.abort()
  }
}

/** What was said in a conversation of which the service keeps nothing. */
const earlier = (turns) =>
  turns
    .filter((turn) => turn.status === 'completed')
    .flatMap((turn) => [{ role: 'user', content: turn.message, images: turn.images }, { role: 'assistant', content: turn.answer }])
    .slice(-200)

/** Wait for some milliseconds, or until the browser is online again. */
const untilOnline = (wait) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, wait)
    addEventListener('online', () => {
      clearTimeout(timer)
      resolve()
    }, { once: true })
  })

export const randomName = () =>
  `console-${[...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(36).padStart(2, '0')).join('')}`
