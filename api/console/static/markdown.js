// Markdown of answers as safe HTML, appended block by block: what is finished is never rendered again.

import { Marked } from './vendor/marked.js'
import './vendor/purify.js'
import { t } from './i18n.js'

const { DOMPurify } = globalThis
const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/
const LIST_ITEM = /^\s{0,3}([-*+]|\d{1,9}[.)])\s/
const MOST_HIGHLIGHTED = 20_000
const SHARE_OF_TIME = 4 // a render waits four times as long as the last one took
const PLAIN = /^[\p{L}\p{N} ,;?!()'"“”‘’，。；：？！、（）.-]*$/u // what cannot change how the text before it is read
const SETTLED = 12 // characters of a line from which on it is no list, heading or fence any more

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? '<br>' : escape(text)),
    // A picture of another host would tell that host who reads what.
    image: ({ href, text, title }) => `<a href="${escape(href)}">${escape(text || title || href)}</a>`,
    // The page has a heading of the first order already.
    heading({ tokens, depth }) {
      const level = Math.min(depth + 1, 6)
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
})

const ALLOWED = {
  ALLOWED_TAGS: ['a', 'b', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'li', 'ol', 'p', 'pre', 's', 'span', 'strong', 'sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'],
  ALLOWED_ATTR: ['href', 'title', 'align', 'start', 'class'],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
}

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer nofollow')
  }
})

function render(text) {
  const fragment = DOMPurify.sanitize(marked.parse(text), ALLOWED)
  for (const block of fragment.children) block.dir = 'auto'
  for (const table of fragment.querySelectorAll('table')) {
    const frame = element('div', 'table-frame')
    frame.tabIndex = 0
    table.replaceWith(frame)
    frame.append(table)
  }
  for (const code of fragment.querySelectorAll('pre > code')) dressed(code.parentElement, /language-([\w+-]+)/.exec(code.className)?.[1])
  return fragment
}

export class Markdown {
  #root
  #tail = element('div', 'md-tail')
  #open = '' // the block that may still grow, complete lines only
  #line = '' // the last line, which may still grow
  #code = null // the open code block: {node, fence, language}
  #inList = false
  #blank = false
  #shown = 0 // characters of the last line that are on screen, if the tail was rendered with them
  #due = 0
  #timer = 0

  constructor(root) {
    this.#root = root
    root.append(this.#tail)
  }

  /** Take more text; it is on screen with the next frame. */
  push(text) {
    this.#line += text
    if (this.#timer) return
    const wait = this.#due - performance.now()
    const later = () => {
      this.#timer = 0
      this.#flush()
    }
    // A page that nobody sees gets no frames.
    this.#timer = wait > 16 || document.hidden ? setTimeout(later, Math.max(wait, 50)) : requestAnimationFrame(later)
  }

  /** Show all of it; nothing follows. */
  finish() {
    this.#line += '\n'
    this.#takeLines()
    if (this.#code) this.#closeCode()
    this.#commit()
    this.#tail.remove()
  }

  #flush() {
    const began = performance.now()
    this.#takeLines()
    if (this.#code) {
      // A line that begins like a fence is held back until it is complete.
      if (this.#line && !/^\s*[`~]/.test(this.#line)) {
        this.#code.node.append(this.#line)
        this.#code.partial = true
        this.#line = ''
      }
      this.#tail.replaceChildren()
    } else {
      if (!this.#appendPlain()) {
        const text = this.#open + this.#line
        this.#tail.replaceChildren(...(text.trim() ? [render(text)] : []))
      }
      this.#shown = this.#line.length
    }
    const took = performance.now() - began
    this.#due = performance.now() + took * SHARE_OF_TIME
  }

  /** Most of what comes is plain words in the middle of a line: they need no rendering. */
  #appendPlain() {
    const added = this.#line.slice(this.#shown)
    if (this.#shown < SETTLED || !PLAIN.test(added)) return false
    let last = this.#tail
    while (last.lastChild) last = last.lastChild
    if (last.nodeType !== Node.TEXT_NODE || last.parentElement.closest('a, code, strong, em, del, td')) return false
    // Spaces at the end are not rendered before a word follows.
    const ending = this.#line.slice(0, this.#shown).match(/ *$/)[0]
    last.appendData((last.data.endsWith(' ') ? '' : ending) + added)
    return true
  }

  #takeLines() {
    const lines = this.#line.split('\n')
    this.#line = lines.pop()
    if (lines.length) this.#shown = 0
    for (const line of lines) this.#take(line)
  }

  #take(line) {
    if (this.#code) {
      const { node, fence, partial } = this.#code
      this.#code.partial = false
      if (!partial && line.trim().startsWith(fence) && !line.trim().replaceAll(fence[0], '')) this.#closeCode()
      else node.append(`${line}\n`)
      return
    }
    const fence = FENCE.exec(line)
    if (fence && !(this.#inList && fence[1])) {
      this.#commit()
      this.#openCode(fence[2], fence[3])
    } else if (!line.trim()) {
      this.#blank = this.#open !== ''
      this.#open += this.#open && '\n'
    } else {
      if (this.#blank && !this.#continues(line)) this.#commit()
      if (!this.#open) this.#inList = LIST_ITEM.test(line)
      this.#blank = false
      this.#open += `${line}\n`
    }
  }

  #continues(line) {
    return this.#inList && (/^(?: {2,}|\t)/.test(line) || LIST_ITEM.test(line))
  }

  #commit() {
    if (this.#open.trim()) this.#tail.before(render(this.#open))
    this.#tail.replaceChildren()
    this.#open = ''
    this.#blank = this.#inList = false
  }

  #openCode(fence, language) {
    const pre = element('pre')
    const node = element('code')
    pre.append(node)
    this.#tail.before(pre)
    this.#code = { node, fence, language, partial: false }
    dressed(pre, language)
  }

  #closeCode() {
    const { node, language } = this.#code
    this.#code = null
    node.textContent = node.textContent.replace(/\n$/, '')
    highlight(node, language)
  }
}

/** Show a whole text. */
export function showMarkdown(root, text) {
  root.replaceChildren()
  const markdown = new Markdown(root)
  markdown.push(text)
  markdown.finish()
}

/** A code block with its language and a button that copies it. */
function dressed(pre, language) {
  const frame = element('div', 'code-frame')
  const head = element('div', 'code-head')
  const name = element('span', '', language || t('code'))
  const copy = element('button', 'link', t('copy'))
  copy.type = 'button'
  copy.addEventListener('click', async () => {
    await navigator.clipboard?.writeText(pre.textContent)
    copy.textContent = t('copied')
    setTimeout(() => (copy.textContent = t('copy')), 1500)
  })
  head.append(name, copy)
  pre.replaceWith(frame)
  pre.tabIndex = 0
  frame.append(head, pre)
}

async function highlight(node, language) {
  if (!language || node.textContent.length > MOST_HIGHLIGHTED) return
  const { default: hljs } = await import('./vendor/highlight.js')
  if (!hljs.getLanguage(language)) return
  const { value } = hljs.highlight(node.textContent, { language, ignoreIllegals: true })
  node.replaceChildren(DOMPurify.sanitize(value, ALLOWED))
}

/** Make `[2]` in the text a button that shows the second source. */
export function linkCitations(root, count, onSource) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  const texts = []
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('pre, code, a')) texts.push(walker.currentNode)
  for (const text of texts) {
    const parts = text.data.split(/\[(\d{1,2})\]/)
    if (parts.length === 1) continue
    text.replaceWith(
      ...parts.map((part, place) => {
        if (place % 2 === 0) return part
        if (Number(part) < 1 || Number(part) > count) return `[${part}]`
        const button = element('button', 'citation', part)
        button.type = 'button'
        button.setAttribute('aria-label', t('source_number', { n: part }))
        button.addEventListener('click', () => onSource(Number(part) - 1))
        return button
      }),
    )
  }
}

function element(name, className = '', text = '') {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text) made.textContent = text
  return made
}
