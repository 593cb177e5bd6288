// The recall lab: what a question finds in memory, as of any day, with the lists that found it side by side.

import { post, rooted, userPath } from '../api.js'
import { date, number, t, word } from '../i18n.js'
import { Button, Chip, Empty, html, Page, Select, toast, useState } from '../ui.js'
import { legName, Likely, Messages } from '../chat/why.js'
import { ChooseExpert, Said, useForm } from './parts.js'

export const screen = 'recall'

export function Screen({ user }) {
  const [form, set] = useForm({ query: '', asked_at: '', since: '', until: '', episode_type: '', top_k: 10, expert: 'default' })
  const [found, setFound] = useState(null)
  const [took, setTook] = useState(0)
  const body = () => ({
    query: form.query,
    top_k: Number(form.top_k),
    expert: form.expert,
    ...(form.episode_type ? { episode_type: form.episode_type } : {}),
    ...(form.asked_at ? { asked_at: new Date(`${form.asked_at}T23:59:59`).toISOString() } : {}),
    ...(form.since ? { since: new Date(`${form.since}T00:00`).toISOString() } : {}),
    ...(form.until ? { until: new Date(`${form.until}T00:00`).toISOString() } : {}),
  })
  const path = userPath(user, 'episodes', 'search')
  const search = async () => {
    const began = performance.now()
    setFound(await post(path, body()))
    setTook(performance.now() - began)
  }
  const curl = async () => {
    await navigator.clipboard.writeText(`curl ${rooted(path)} -H 'Content-Type: application/json' -d '${JSON.stringify(body()).replaceAll("'", "'\\''")}'`)
    toast(t('copied'))
  }
  return html`<${Page} title=${t('nav.recall')} lead=${t('recall.lead')}>
    <form onSubmit=${(event) => event.preventDefault()}>
      <div class="filters"><input type="search" autofocus placeholder=${t('recall.query')} aria-label=${t('recall.query')} value=${form.query} onInput=${set('query')} /><${Button} kind="primary" type="submit" disabled=${!form.query.trim()} onClick=${search}>${t('recall.search')}<//></div>
      <div class="filters">
        <label class="check">${t('recall.as_of')}<input type="date" value=${form.asked_at} onInput=${set('asked_at')} /></label>
        <label class="check">${t('recall.since')}<input type="date" value=${form.since} onInput=${set('since')} /></label>
        <label class="check">${t('recall.until')}<input type="date" value=${form.until} onInput=${set('until')} /></label>
        <${Select} aria-label=${t('memory.type')} value=${form.episode_type} onChange=${set('episode_type')} options=${['', 'turn', 'preference', 'decision', 'context', 'outcome'].map((each) => [each, each ? word('type', each) : t('memory.every_type')])} />
        <${Select} aria-label=${t('recall.most')} value=${String(form.top_k)} onChange=${set('top_k')} options=${['5', '10', '20', '50'].map((each) => [each, t('recall.up_to', { n: each })])} />
        <${ChooseExpert} value=${form.expert} onChange=${set('expert')} />
        <span class="grow"></span><button type="button" class="link" disabled=${!form.query.trim()} onClick=${curl}>${t('recall.curl')}</button>
      </div>
    </form>
    ${!found && html`<${Empty} title=${t('recall.empty')}>${t('recall.empty_hint')}<//>`}
    ${found && html`<p class="muted">${t('recall.took', { n: found.items.length, ms: number(Math.round(took)) })} ${found.degraded.length > 0 && html`<${Chip} kind="note">${t('went_without', { what: found.degraded.map((name) => word('degraded', name)).join(t('list_separator')) })}<//>`}</p>
      ${found.items.length === 0 ? html`<${Empty} title=${t('memory.none_found')} />` : html`<div class="two"><div><h2>${t('recall.best')}</h2><ol class="recalled">${found.items.map((item) => html`<${Found} key=${item.id} item=${item} />`)}</ol></div><div><h2>${t('recall.lists')}</h2><${Legs} items=${found.items} /></div></div>`}`}
  <//>`
}

function Found({ item }) {
  const [open, setOpen] = useState(false)
  return html`<li class="item">
    <${Said} text=${item.content} most=${open ? Infinity : 300} />
    <div class="facts"><${Chip}>${word('type', item.episode_type)}<//><small class="muted">${date(item.created_at)}</small><span class="grow"></span>${item.likelihood !== null && html`<${Likely} value=${item.likelihood} />`}<small class="muted num">${number(item.score, { maximumFractionDigits: 3 })}</small></div>
    <button type="button" class="link" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? t('why.less') : t('why.details')}</button>
    ${open && html`<div class="details"><${Messages} messages=${item.sources} conversation=${item.conversation_id} /></div>`}
  </li>`
}

/** Each list that found something, with its own order. */
function Legs({ items }) {
  const legs = new Map()
  for (const item of items) for (const [leg, rank] of Object.entries(item.ranks ?? {})) legs.set(leg, [...(legs.get(leg) ?? []), { item, rank }])
  if (!legs.size) return html`<p class="muted">${t('recall.no_lists')}</p>`
  return html`<div class="legs">${[...legs].map(([leg, found]) => html`<section class="card"><h3>${legName(leg)}</h3>
    <ol>${found.sort((one, other) => one.rank - other.rank).map(({ item, rank }) => html`<li value=${rank} dir="auto">${beginning(item.content)}</li>`)}</ol></section>`)}</div>`
}

/** The beginning of what was said, without who said it. */
function beginning(content) {
  const text = content.replace(/^(user|assistant): /gm, '')
  return text.length > 90 ? `${text.slice(0, 90)}…` : text
}
