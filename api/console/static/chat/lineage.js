// Where what a prompt showed comes from: the derived items of its sections, whose words they are, and their sources.

import { date, number, t, word } from '../i18n.js'
import { Chip, html, useState } from '../ui.js'

/** Who made something: with which model and prompt, in which job or turn, as far as that is known. */
const makerOf = ({ actor, model, prompt, job, turn_id: turn }) =>
  [actor && word('actor', actor), model, prompt, job && t('why.job', { name: word('task', job) }), turn && t('why.turn', { id: turn.slice(-8) })].filter(Boolean).join(' · ')

/** Whose words something is made of, and who made it. */
export function Origin({ of }) {
  if (!of) return null
  const maker = makerOf(of.made_by)
  // The least trusted of its sources says nothing of who said it, unless somebody else's words are among them.
  const foreign = ['document', 'import', 'tool'].includes(of.origin)
  return html`${foreign && html`<${Chip} kind="note" title=${t('why.origin_hint')}>${word('draws_on', of.origin)}<//>`}${maker && html` <small class="muted">${maker}</small>`}`
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
    ${(item.source_count > 0 || item.values.length > 0) && html`<div class="row"><button type="button" class="link" aria-expanded=${more} onClick=${() => setMore(!more)}>${more ? t('why.less') : item.source_count ? t('why.sources_count', { n: number(item.source_count) }) : t('why.values_count', { n: number(item.values.length) })}</button></div>`}
    ${more && html`<div class="details">
      ${item.values.length > 0 && html`<dl class="pairs">${item.values.map((value) => html`<dt>${word('field', value.field)}</dt><dd>${value.text} <small class="muted">${makerOf({ actor: value.actor, ...value.made_by })}</small></dd>`)}</dl>`}
      <ul class="source-messages">${item.sources.map((source) => html`<li key=${source.id}>
        <small class="muted">${date(source.at)} · ${source.kind === 'message' ? word('role', source.made_by.actor) : word('kind', source.kind)} · ${word('origin', source.origin)}</small>
        ${source.text && html`<blockquote tabindex="0">${source.text}</blockquote>`}
      </li>`)}</ul>
      ${hidden > 0 && html`<p class="muted">${t('why.more_sources', { n: number(hidden) })}</p>`}
    </div>`}
  </li>`
}

const shortened = ({ kind, text }) => (kind === 'core_memory' ? word('core_section', text) : text.length > 240 ? `${text.slice(0, 240)}…` : text)
