// A list of which only what is in sight is in the page: thousands of items of any height scroll like ten.

import { html, useEffect, useLayoutEffect, useMemo, useReducer, useRef } from './ui.js'

const GUESS = 110 // pixels of an item that has not been seen yet
const BEYOND = 900 // pixels above and below what is in sight that are in the page as well
const NEAR_THE_END = 3000 // pixels from the end at which more is fetched
const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5, Home: -Infinity, End: Infinity }

/**
 * Items as a feed (arrow keys, Page Up and Down, Home and End move; others go to `onKey(event, item)`).
 *
 * `draw(item)` is an item's content, `more` fetches further items where there are any.
 */
export function VirtualList({ items, draw, more, label, classOf, onKey }) {
  const [, redraw] = useReducer((count) => count + 1, 0)
  const feed = useRef()
  const state = useRef({ heights: new Map(), active: 0, focusing: false, fetching: false, toEnd: false, inside: false, drawing: false }).current
  const drawn = useMemo(() => new Map(), [draw]) // what is the same as before is not compared again

  // Places from the top, and which of them are in sight.
  const tops = new Float64Array(items.length + 1)
  for (let n = 0; n < items.length; n++) tops[n + 1] = tops[n] + (state.heights.get(items[n].id) ?? GUESS)
  const scroller = feed.current?.closest('main')
  const offset = scroller ? scroller.getBoundingClientRect().top - feed.current.getBoundingClientRect().top : 0
  const first = Math.max(0, placeOf(tops, offset - BEYOND))
  const last = Math.min(items.length, placeOf(tops, offset + (scroller?.clientHeight ?? 900) + BEYOND) + 1)

  useEffect(() => {
    const main = feed.current.closest('main')
    main.addEventListener('scroll', redraw, { passive: true })
    addEventListener('resize', redraw)
    redraw()
    return () => {
      main.removeEventListener('scroll', redraw)
      removeEventListener('resize', redraw)
    }
  }, [])
  useLayoutEffect(() => {
    state.drawing = false
    let changed = false
    for (const node of feed.current.querySelectorAll(':scope > article')) {
      const height = node.nextElementSibling.getBoundingClientRect().top - node.getBoundingClientRect().top
      if (Math.abs((state.heights.get(node.dataset.id) ?? GUESS) - height) < 0.5) continue
      state.heights.set(node.dataset.id, height)
      changed = true
    }
    if (changed) redraw()
    else if (state.focusing) focusActive()
    else if (state.inside && document.activeElement === document.body) feed.current.focus({ preventScroll: true })
  })
  useEffect(() => {
    if (state.toEnd && !more) moveTo(items.length - 1)
    if (!more || state.fetching || (!state.toEnd && tops[items.length] - offset > NEAR_THE_END)) return
    state.fetching = true
    more().finally(() => {
      state.fetching = false
      redraw()
    })
  })

  const focusActive = () => {
    const node = feed.current.querySelector(`[aria-posinset="${state.active + 1}"]`)
    if (!node) return
    state.focusing = false
    node.focus({ preventScroll: true })
    node.scrollIntoView({ block: 'nearest' })
  }
  const moveTo = (place) => {
    state.active = Math.max(0, Math.min(items.length - 1, place))
    state.focusing = true
    state.toEnd = false
    if (state.active < first || state.active >= last) scroller.scrollTop += tops[state.active] - offset - 60
    redraw()
  }
  const keys = (event) => {
    if (!event.target.matches('article, .feed')) return
    if (!(event.key in MOVES)) return onKey(event, items[state.active])
    event.preventDefault()
    moveTo(state.active + MOVES[event.key])
    state.toEnd = event.key === 'End'
  }
  const focused = (event) => {
    const node = event.target.closest('article')
    state.inside = true
    if (node) state.active = Number(node.getAttribute('aria-posinset')) - 1
  }
  const left = (event) => {
    // An item that is scrolled away takes the focus with it.
    if (!state.drawing && !feed.current?.contains(event.relatedTarget)) state.inside = false
  }
  const content = (item) => {
    if (!drawn.has(item.id)) drawn.set(item.id, draw(item))
    return drawn.get(item.id)
  }
  state.drawing = true
  const active = Math.min(state.active, items.length - 1)
  return html`<div class="feed" role="feed" aria-label=${label} aria-busy=${state.fetching} ref=${feed} tabindex="-1" onKeyDown=${keys} onfocusin=${focused} onfocusout=${left}>
    <div class="space" style=${{ height: `${tops[first]}px` }}></div>
    ${items.slice(first, last).map((item, n) => html`<article key=${item.id} data-id=${item.id} class=${classOf(item)} tabindex=${first + n === active || (active < first && n === 0) || (active >= last && first + n === last - 1) ? 0 : -1} aria-posinset=${first + n + 1} aria-setsize=${more ? -1 : items.length} aria-labelledby=${`text-${item.id}`}>${content(item)}</article>`)}
    <div class="space" style=${{ height: `${tops[items.length] - tops[last]}px` }}></div>
  </div>`
}

/** The last place whose top is not below `y`. */
function placeOf(tops, y) {
  let [low, high] = [0, tops.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (tops[middle] <= y) low = middle
    else high = middle - 1
  }
  return low
}
