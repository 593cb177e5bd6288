// Why an answer is as it is: what the model was sent, what was recalled and what was left out, and the way to mend it.

import { get, patch, post, userPath } from '../api.js'
import { date, known as textOf, milliseconds, number, percent, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, Field, html, Icon, Loaded, Meter, toast, useLoad, useState, When } from '../ui.js'
import { neverUse } from './compare.js'
import { Lineage, Origin } from './lineage.js'
import { noted } from './turn.js'

export function Why({ turn, user, may, onClose, onAnswerAgain, onExcluded }) {
  const found = useLoad(() => get(`/api/v1/turns/${turn.id}/why`), [turn.id])
  const why = found.data
  const exclusions = useLoad(async () => (why ? (await get(`/api/v1/conversations/${why.conversation_id}/exclusions`)).items : []), [why?.conversation_id])
  const changed = () => {
    found.reload()
    toast(t('why.changed'), onAnswerAgain && { action: { label: t('why.answer_again'), run: () => onAnswerAgain() } })
  }
  const here = {
    never: (what) => neverUse(why.conversation_id, what, () => Promise.all([exclusions.reload(), onExcluded?.()])),
    excludes: (what) => exclusions.data?.some((each) => each.memory_id === what || each.message_id === what),
    again: onAnswerAgain && ((item) => onAnswerAgain([item.episode_id], item.text)),
  }
  return html`<${Dialog} side title=${t('why.title')} onClose=${onClose}>
    <${Loaded} of=${found} rows=${8}>
      ${why && html`
        <${Sent} why=${why} />
        <${Recalled} why=${why} user=${user} may=${may} here=${here} onChanged=${changed} />
        <${Lineage} why=${why} />
        <${LeftOut} why=${why} />
        <${Sources} why=${why} />
        <${Rounds} why=${why} />
        <${Times} why=${why} />
        <${Rest} why=${why} />`}
    <//>
  <//>`
}

const sentTokens = (why) => why.sections.reduce((sum, section) => sum + section.tokens, 0)

function Sent({ why }) {
  const [open, setOpen] = useState(null)
  const all = sentTokens(why)
  if (!all) return html`<section><p class="muted">${t('why.no_model')}</p></section>`
  const width = Math.max(all, why.budget)
  return html`<section>
    <h3>${t('why.sent')}</h3>
    <p class="muted">${t('why.of_budget', { tokens: number(all), budget: number(why.budget) })}${why.prefix.tokens > 0 && ` ${t('why.prefix', { share: percent(why.prefix.share) })}`}</p>
    <div class="stack" role="img" aria-label=${t('why.of_budget', { tokens: number(all), budget: number(why.budget) })}>
      ${why.sections.map((section) => html`<i key=${section.name} class=${`s-${section.name}`} title=${`${word('section', section.name)}: ${number(section.tokens)}`} style=${{ width: `${(section.tokens / width) * 100}%` }}></i>`)}
    </div>
    <ul class="sections">
      ${why.sections.map((section) => html`<li key=${section.name}>
        <button type="button" aria-expanded=${open === section.name} onClick=${() => setOpen(open === section.name ? null : section.name)}>
          <i class=${`swatch s-${section.name}`}></i><span>${word('section', section.name)}</span><span class="num">${number(section.tokens)}</span><small class="muted num">${percent(section.tokens / all)}</small>
        </button>
        ${open === section.name && html`<div class="section-text">${section.text ? html`<pre tabindex="0">${section.text}</pre>` : html`<p class="muted">${t(`why.text_${why.texts}`)}</p>`}</div>`}
      </li>`)}
    </ul>
  </section>`
}

const byLikelihood = (one, other) => other.likelihood - one.likelihood

function Recalled({ why, user, may, here, onChanged }) {
  const [all, setAll] = useState(false)
  if (!why.recall.items.length) return html`<section><h3>${t('why.recalled')}</h3><p class="muted">${t('why.nothing_recalled')}</p></section>`
  const shown = why.recall.items.filter((item) => item.shown).sort(byLikelihood)
  const others = why.recall.items.filter((item) => !item.shown).sort(byLikelihood)
  return html`<section>
    <h3>${t('why.recalled')} <small class="muted">${t('why.recalled_count', { shown: shown.length, left: others.length })}</small></h3>
    ${why.recall.queries.length > 1 && html`<p class="muted">${t('why.asked_for')} ${why.recall.queries.map((query) => html`<${Chip}>${query.text ?? query}<//> `)}</p>`}
    <ul class="recalled">${shown.map((item) => html`<${Item} key=${item.unit_id} item=${item} made=${why.lineage.find((each) => each.section === 'recall' && each.id === item.episode_id)} user=${user} may=${may} here=${here} onChanged=${onChanged} />`)}</ul>
    ${others.length > 0 && html`<button type="button" class="button quiet small" aria-expanded=${all} onClick=${() => setAll(!all)}>${all ? t('why.hide_others') : t('why.show_others', { n: others.length })}</button>`}
    ${all && html`<ul class="recalled">${others.map((item) => html`<${Item} key=${item.unit_id} item=${item} made=${why.lineage.find((each) => each.section === 'recall' && each.id === item.episode_id)} user=${user} may=${may} here=${here} onChanged=${onChanged} />`)}</ul>`}
  </section>`
}

function Item({ item, made, user, may, here, onChanged }) {
  const [more, setMore] = useState(false)
  const [wrong, setWrong] = useState(false)
  const [forgetting, setForgetting] = useState(false)
  const gone = item.text === null
  const said = item.sources.find((each) => each.content === item.text) // a message says itself whose words it is
  return html`<li class=${item.shown ? 'item' : 'item hidden-item'}>
    <p>${gone ? html`<em class="muted">${t('why.gone')}</em>` : item.text}</p>
    <div class="facts">
      ${item.shown ? html`<${Chip} kind="good">${t('why.shown')}<//>` : html`<${Chip} title=${item.reason ?? ''}>${reasonOf(item)}<//>`}
      ${here.excludes(item.episode_id) && html`<${Chip} kind="note">${t('reason.never used here')}<//>`}
      ${item.created_at && html`<small class="muted">${date(item.created_at)}</small>`}
      <small class="muted">${word('type', item.episode_type ?? '')}</small>
      ${said ? html`<small class="muted">${said.speaker ?? t(`said_by.${said.role}`)}</small>` : html`<${Origin} of=${made} />`}
      <span class="grow"></span><${Likely} value=${item.likelihood} />
    </div>
    <div class="row">
      <button type="button" class="link" aria-expanded=${more} onClick=${() => setMore(!more)}>${more ? t('why.less') : t('why.details')}</button>
      ${!gone && may('memory:write') && html`<button type="button" class="link" onClick=${() => setWrong(true)}>${t('why.wrong')}</button><button type="button" class="link" onClick=${() => setForgetting(true)}>${t('forget')}…</button>${!here.excludes(item.episode_id) && html`<${Button} kind="link" onClick=${() => here.never(item.episode_id)}>${t('why.never_here')}<//>`}`}
      ${!gone && item.shown && here.again && html`<button type="button" class="link" onClick=${() => here.again(item)}>${t('why.without')}</button>`}
    </div>
    ${more && html`<div class="details">
      <table><tbody>
        ${Object.entries(item.ranks).map(([leg, rank]) => html`<tr><th>${t('why.rank_in', { list: legName(leg) })}</th><td class="num">${rank}</td></tr>`)}
        <tr><th>${t('why.score')}</th><td class="num">${number(item.score, { maximumFractionDigits: 4 })}</td></tr>
        <tr><th>${t('why.relevance')}</th><td class="num">${number(item.relevance)}</td></tr>
        ${item.cosine !== null && html`<tr><th>${t('why.cosine')}</th><td class="num">${number(item.cosine)}</td></tr>`}
      </tbody></table>
      <${Messages} messages=${item.sources} conversation=${item.conversation_id} here=${may('memory:write') ? here : null} />
    </div>`}
    ${wrong && html`<${Wrong} item=${item} user=${user} onClose=${() => setWrong(false)} onChanged=${onChanged} />`}
    ${forgetting && html`<${Forget} what=${item.episode_id} text=${item.text} expert=${item.expert} user=${user} onClose=${() => setForgetting(false)} onChanged=${onChanged} />`}
  </li>`
}

/** How likely something bears on the message, kept together on one line. */
export const Likely = ({ value }) => html`<span class="likely"><small class="muted">${t('why.likelihood')}</small><${Meter} value=${value} label=${percent(value)} /><small class="num">${percent(value)}</small></span>`

const reasonOf = ({ reason }) => word('reason', reason?.startsWith('superseded by') ? 'superseded' : (reason ?? 'over the budget'))

export const legName = (leg) => {
  const [name, query] = leg.split(':')
  return query && query !== '0' ? t('why.list_of_query', { list: word('leg', name), n: Number(query) + 1 }) : word('leg', name)
}

/** The messages that a memory comes from, each with the way to its conversation. */
export function Messages({ messages, conversation, here }) {
  if (!messages.length) return html`<p class="muted">${t('no_sources')}</p>`
  return html`<ul class="source-messages">${messages.map((message) => html`<li key=${message.message_id}>
    <small class="muted">${message.speaker ?? t(`role.${message.role}`)} · <${When} at=${message.created_at} />${conversation && html` · <a href=${`#/chat/${conversation}`}>${t('open_conversation')}</a>`}${here && (here.excludes(message.message_id) ? html` <${Chip} kind="note">${t('reason.never used here')}<//>` : html` · <${Button} kind="link" onClick=${() => here.never(message.message_id)}>${t('why.never_here')}<//>`)}</small>
    <blockquote tabindex="0">${message.content}</blockquote>
  </li>`)}</ul>`
}

/** Forget a memory, once the reader has seen what goes with it. */
export function Forget({ what, text, expert = 'default', user, onClose, onChanged }) {
  const preview = useLoad(() => post(userPath(user, 'memory', 'forget'), { what, expert, all: true, dry_run: true }), [what])
  const forget = async () => {
    const change = await post(userPath(user, 'memory', 'forget'), { what, expert, all: true })
    onChanged?.(change)
  }
  return html`<${Confirm} title=${t('forget_title')} action=${t('forget')} onConfirm=${forget} onClose=${onClose}>
    <blockquote tabindex="0">${text}</blockquote>
    <${Loaded} of=${preview} rows=${2}>
      ${preview.data && html`<${Affected} change=${preview.data} />`}
    <//>
    <p class="muted">${t('forget_note')}</p>
  <//>`
}

export const Affected = ({ change }) =>
  change.items.length
    ? html`<p>${t('affected')}</p><ul class="plain">${change.items.map((item) => html`<li>${item}</li>`)}</ul><p class="muted">${t('affected_counts', { messages: change.affected?.messages ?? 0, memories: change.affected?.memories ?? 0, fields: change.affected?.core_memory_items ?? 0 })}</p>${change.also_said?.length > 0 && html`<p>${t('affected_also')}</p><ul class="plain">${change.also_said.map((each) => html`<li>${each}</li>`)}</ul>`}`
    : html`<p class="muted">${t('affects_nothing')}</p>`

/** Put right what is remembered wrongly: a written memory is edited, what was said is forgotten and noted anew. */
function Wrong({ item, user, onClose, onChanged }) {
  const written = item.episode_type !== 'turn'
  const [text, setText] = useState(written ? item.text : '')
  const mend = async () => {
    const expert = item.expert ?? 'default'
    if (written && text.trim()) await patch(userPath(user, 'episodes', item.episode_id), { content: text })
    else {
      await post(userPath(user, 'memory', 'forget'), { what: item.episode_id, expert })
      if (text.trim()) await post(userPath(user, 'episodes'), { content: text, episode_type: 'context', expert })
    }
    onChanged()
  }
  return html`<${Confirm} title=${t('wrong_title')} action=${text.trim() ? t('correct') : t('forget')} kind="primary" onConfirm=${mend} onClose=${onClose}>
    <blockquote tabindex="0">${item.text}</blockquote>
    <${Field} label=${t('what_is_right')} hint=${t('what_is_right_hint')}><textarea rows="3" autofocus value=${text} onInput=${(event) => setText(event.target.value)}></textarea><//>
  <//>`
}

const fieldWord = (name) => name.split('.').map((part) => textOf(`core_section.${part}`) ?? word('field', part)).join(' · ')

function LeftOut({ why }) {
  const degraded = [...new Set(why.degraded)]
  if (!why.dropped.length && !degraded.length) return null
  return html`<section><h3>${t('why.left_out')}</h3><ul class="plain">
    ${degraded.map((name) => html`<li>${word('degraded', name)} <span class="muted">(${t('why.not_available')})</span></li>`)}
    ${why.dropped.map((each) => html`<li>${word('section', each.section)}: ${t('why.items', { n: each.items })} <span class="muted">(${word('reason', each.reason)})</span>${each.fields && html` <span class="muted">${each.fields.map(fieldWord).join(t('list_separator'))}</span>`}</li>`)}
  </ul></section>`
}

function Sources({ why }) {
  if (!why.sources.length) return null
  return html`<section><h3>${t('sources')}</h3><ul class="recalled">${why.sources.map((source) => html`<li class="item"><p>${source.text ?? html`<em class="muted">${t('why.gone')}</em>`}</p><div class="facts"><small><b>${source.document}</b> ${source.heading}</small><span class="grow"></span><${Meter} value=${source.score} label=${percent(source.score)} /></div></li>`)}</ul></section>`
}

function Rounds({ why }) {
  if (!why.rounds.length) return null
  const size = (round, call) => round.results.find((each) => each.name === call.name)?.characters
  return html`<section><h3>${t('why.rounds')}</h3><ul class="recalled">${why.rounds.map((round) => html`<li class="item">
    ${round.text && html`<p>${round.text}</p>`}
    ${round.calls.map((call) => html`<div class="facts"><small><b>${call.name}</b> ${JSON.stringify(call.arguments)}</small><span class="grow"></span><small class="num">${size(round, call) === undefined ? t('why.no_result') : t('why.characters', { n: number(size(round, call)) })}</small></div>`)}
  </li>`)}</ul></section>`
}

function Times({ why }) {
  if (!why.nodes.length) return null
  const total = why.nodes.reduce((sum, node) => sum + node.ms, 0) || 1
  let before = 0
  return html`<section><h3>${t('why.times')}</h3>
    <ul class="waterfall">${why.nodes.map((node) => {
      const left = before
      before += node.ms
      return html`<li><span>${word('node', node.name)}</span><span class="track"><i style=${{ marginLeft: `${(left / total) * 100}%`, width: `${Math.max((node.ms / total) * 100, 0.6)}%` }}></i></span><span class="num">${milliseconds(node.ms)}</span></li>`
    })}</ul>
    <p class="muted">${why.first_token_ms !== null && t('first_token', { time: milliseconds(why.first_token_ms) })} ${why.usage && t(why.usage.estimated || why.usage.input_tokens < sentTokens(why) ? 'why.usage_estimated' : 'why.usage', { input: number(why.usage.input_tokens), output: number(why.usage.output_tokens), cached: number(why.usage.cached_tokens) })}</p>
  </section>`
}

function Rest({ why }) {
  const route = why.route
  return html`<section><h3>${t('why.more')}</h3>
    <dl class="pairs">
      <dt>${t('expert')}</dt><dd>${why.expert}</dd>
      ${route && html`<dt>${t('why.route')}</dt><dd>${word('worker', route.worker_name)} · ${word('method', route.method)}${route.reason && html`<br /><small class="muted">${word('route_reason', route.reason)}</small>`}</dd>`}
      <dt>${t('why.epoch')}</dt><dd>${why.epoch ?? '–'}${why.epoch_reason && html` <small class="muted">(${word('epoch_reason', why.epoch_reason)})</small>`}</dd>
      <dt>${t('why.features')}</dt><dd>${why.features.map((name) => html`<${Chip}>${word('feature', name)}<//> `)}</dd>
      ${why.operations.length > 0 && html`<dt>${t('why.operations')}</dt><dd>${why.operations.map((each) => html`<div><${Icon} name="spark" /> ${word('operation', each.type)}: ${noted(each)}</div>`)}</dd>`}
    </dl>
  </section>`
}
