// The timeline: days with a record or a promise, what was talked about, and the visits of a day.

import { all, get, userPath } from '../api.js'
import { date, t, time, word } from '../i18n.js'
import { Chip, Empty, html, IconButton, Loaded, Page, useLoad, useState } from '../ui.js'
import { ChooseExpert } from './parts.js'

export const screen = 'timeline'
const dayOf = (at) => {
  const day = new Date(at)
  return `${day.getFullYear()}-${String(day.getMonth() + 1).padStart(2, '0')}-${String(day.getDate()).padStart(2, '0')}`
}

export function Screen({ user }) {
  const [month, setMonth] = useState(() => new Date(new Date().getFullYear(), new Date().getMonth(), 1))
  const [day, setDay] = useState(null)
  const [expert, setExpert] = useState('default')
  const last = new Date(month.getFullYear(), month.getMonth() + 1, 0)
  const missing = (error) => (error.status === 404 ? { items: [], pending: [] } : Promise.reject(error))
  const days = useLoad(() => get(userPath(user, 'daily-summaries'), { from: dayOf(month), to: dayOf(last), expert, limit: 100 }).catch(missing), [user, month, expert])
  const visits = useLoad(() => all(userPath(user, 'visits'), {}, 1000).catch((error) => missing(error).items ?? []), [user])
  const promises = useLoad(() => all(userPath(user, 'promises'), {}, 1000), [user])
  const inMonth = (at) => new Date(at) >= month && new Date(at) < new Date(month.getFullYear(), month.getMonth() + 1, 1)
  const shown = (visits.data ?? []).filter((visit) => inMonth(visit.started_at))
  const promised = (promises.data ?? []).filter((each) => each.state !== 'cancelled' && inMonth(each.when))
  const ends = Math.max(Date.now(), ...(promises.data ?? []).map((each) => new Date(each.when)))
  const step = (by) => {
    setMonth(new Date(month.getFullYear(), month.getMonth() + by, 1))
    setDay(null)
  }
  return html`<${Page} title=${t('nav.timeline')} lead=${t('timeline.lead')} actions=${html`<${ChooseExpert} value=${expert} onChange=${setExpert} />`}>
    <div class="card-head"><${IconButton} icon="left" label=${t('timeline.month_before')} onClick=${() => step(-1)} /><h2>${date(month, { month: 'long', year: 'numeric' })}</h2><${IconButton} icon="right" label=${t('timeline.month_after')} disabled=${last > ends} onClick=${() => step(1)} />
      ${days.data?.pending.length > 0 && html`<${Chip} kind="note">${t('timeline.pending', { n: days.data.pending.length })}<//>`}</div>
    <${Calendar} month=${month} visits=${shown} promised=${promised} pending=${days.data?.pending ?? []} day=${day} onDay=${(each) => setDay(each === day ? null : each)} />
    <${Bands} visits=${shown} month=${month} last=${last} />
    <${Loaded} of=${days} rows=${5}>
      <${Days} days=${(days.data?.items ?? []).filter((each) => !day || each.date === day)} visits=${shown} promised=${promised} day=${day} />
    <//>
  <//>`
}

/** When a visit was, in the shortest form. */
function span({ started_at: from, last_active_at: to }) {
  return time(from) === time(to) ? time(from) : `${time(from)}–${time(to)}`
}

function Calendar({ month, visits, promised, pending, day, onDay }) {
  const counts = {}
  for (const visit of visits) counts[dayOf(visit.started_at)] = (counts[dayOf(visit.started_at)] ?? 0) + visit.message_count
  const due = new Set(promised.map((each) => dayOf(each.when)))
  const begins = (month.getDay() + 6) % 7 // weeks begin on Monday
  const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate()
  const names = Array.from({ length: 7 }, (_, n) => date(new Date(2024, 0, 1 + n), { weekday: 'short' }))
  return html`<div class="calendar">
    ${names.map((name) => html`<b>${name}</b>`)}
    ${Array.from({ length }, (_, n) => {
      const each = dayOf(new Date(month.getFullYear(), month.getMonth(), n + 1))
      const count = counts[each] ?? 0
      const kind = [(count > 0 || due.has(each)) && 'has', count > 11 && 'busy', pending.includes(each) && 'pending'].filter(Boolean).join(' ')
      return html`<button type="button" key=${each} class=${kind} style=${n === 0 ? { gridColumnStart: begins + 1 } : {}} aria-pressed=${each === day} aria-label=${t('timeline.day', { day: date(new Date(month.getFullYear(), month.getMonth(), n + 1)), n: count })} title=${t('timeline.messages', { n: count })} onClick=${() => onDay(each)}>${n + 1}</button>`
    })}
  </div>`
}

/** The topics that came up most, each as a band over the days of the month. */
function Bands({ visits, month, last }) {
  const found = new Map()
  for (const visit of visits) for (const topic of visit.key_topics) found.set(topic, [...(found.get(topic) ?? []), new Date(visit.started_at).getDate()])
  const topics = [...found].sort((one, other) => other[1].length - one[1].length).slice(0, 8)
  if (!topics.length) return null
  const length = last.getDate()
  return html`<h3>${t('timeline.topics')}</h3><div class="bands">${topics.map(([topic, on]) => html`<div><span class="clip" title=${topic}>${topic}</span><span class="track">${on.map((each) => html`<i title=${date(new Date(month.getFullYear(), month.getMonth(), each))} style=${{ left: `${((each - 1) / length) * 100}%`, width: `${100 / length}%` }}></i>`)}</span></div>`)}</div>`
}

/** What the user felt on a day, by the visits of it. */
const feelingsOf = (visits) => [...new Set(visits.flatMap((visit) => visit.feelings))]

function Days({ days, visits, promised, day }) {
  const dates = [...new Set([...days.map((each) => each.date), ...visits.map((visit) => dayOf(visit.started_at)), ...promised.map((one) => dayOf(one.when))])].filter((each) => !day || each === day).sort().reverse()
  if (!dates.length) return html`<${Empty} title=${day ? t('timeline.nothing') : t('timeline.none')} />`
  return html`<ul class="cards">${dates.map((each) => {
    const summary = days.find((one) => one.date === each)
    const on = visits.filter((visit) => dayOf(visit.started_at) === each)
    const due = promised.filter((one) => dayOf(one.when) === each)
    return html`<li class="card" key=${each}>
      <div class="card-head"><h2>${date(`${each}T12:00`, { weekday: 'long', day: 'numeric', month: 'long' })}</h2>${summary?.stale && html`<${Chip} kind="note">${t('timeline.stale')}<//>`}</div>
      ${summary ? html`<p>${summary.summary}</p>` : on.length > 0 && html`<p class="muted">${t('timeline.no_summary')}</p>`}
      ${due.length > 0 && html`<h3>${t('timeline.promises')}</h3><ul class="plain">${due.map((one) => html`<li key=${one.id}><a href="#/promises">${time(one.when)}</a> <span dir="auto">${one.text}</span> <${Chip}>${word('promise_state', one.state)}<//></li>`)}</ul>`}
      ${summary?.key_topics.length > 0 && html`<p>${summary.key_topics.map((topic) => html`<${Chip}>${topic}<//> `)}</p>`}
      ${feelingsOf(on).length > 0 && html`<p>${feelingsOf(on).map((each) => html`<${Chip} kind="note">${word('feeling', each)}<//> `)}</p>`}
      <div class="facts">${on.map((visit) => html`<a href=${`#/chat/${visit.conversation_id}`} title=${visit.summary ?? ''}>${span(visit)} · ${t('timeline.messages', { n: visit.message_count })}</a>`)}</div>
    </li>`
  })}</ul>`
}
