// Where what a prompt showed comes from: the derived items of its sections, whose words they are, and their sources.

import { date, number, t, word } from '../i18n.js'
import { Chip, html, useState } from '../ui.js'

/** Whose words something is made of, and who made it. */
export function Origin({ of }) {
  if (!of) return null
  const { actor, model, prompt } = of.made_by
  const maker = [actor && word('actor', actor), model, prompt].filter(Boolean).join(' · ')
  const foreign = ['document', 'import', 'tool'].includes(of.origin)
  return html`<${Chip} kind=${foreign ? 'note' : undefined} title=${t('why.origin_hint')}>${word('origin', of.origin)}<//>${maker && html` <small class="muted">${maker}</small>`}`
}

export function Lineage({ why }) {
  const items = why.lineage.filter((each) => each.section !== 'recall')
  if (!items.length) return null
  return html`<section>
    <h3>${t('why.lineage')}</h3>
    <ul class="recalled">${items.map((item) => html`<${Traced} key=${`${item.section} ${item.kind} ${item.id}`} item=${item} />`)}</ul>
  </section>`
}

function Traced({ item }) {
  const [more, setMore] = useState(false)
  const hidden = item.source_count - item.sources.length
  return html`<li class="item">
    <p><b>${word('kind', item.kind)}</b>${item.text && item.kind !== 'private_note' && html` <span>${shortened(item)}</span>`}</p>
    <div class="facts"><${Origin} of=${item} /></div>
    ${item.source_count > 0 && html`<div class="row"><button type="button" class="link" aria-expanded=${more} onClick=${() => setMore(!more)}>${more ? t('why.less') : t('why.sources_count', { n: number(item.source_count) })}</button></div>`}
    ${more && html`<div class="details">
      ${item.values.length > 0 && html`<dl class="pairs">${item.values.map((value) => html`<dt>${value.field}</dt><dd>${value.text}${value.actor && html` <small class="muted">${word('actor', value.actor)}</small>`}</dd>`)}</dl>`}
      <ul class="source-messages">${item.sources.map((source) => html`<li key=${source.id}>
        <small class="muted">${date(source.at)} · ${source.kind === 'message' ? word('role', source.made_by.actor) : word('kind', source.kind)} · ${word('origin', source.origin)}</small>
        ${source.text && html`<blockquote>${source.text}</blockquote>`}
      </li>`)}</ul>
      ${hidden > 0 && html`<p class="muted">${t('why.more_sources', { n: number(hidden) })}</p>`}
    </div>`}
  </li>`
}

const shortened = ({ kind, text }) => (kind === 'core_memory' ? text : kind === 'tone' ? word('emotion', text) : text.length > 240 ? `${text.slice(0, 240)}…` : text)
