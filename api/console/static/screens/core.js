// Core memory: what is always known of the user, as a form or JSON, with its versions and the way back to each.

import { get, post, put, remove, userPath } from '../api.js'
import { currentLanguage, t, word } from '../i18n.js'
import { Button, Chip, Confirm, Dialog, Empty, html, IconButton, Loaded, More, Page, Tabs, toast, useLoad, usePages, useState, When } from '../ui.js'
import { brief } from '../chat/turn.js'
import { ChooseExpert } from './parts.js'

export const screen = 'core'

export function Screen({ user, may }) {
  const [expert, setExpert] = useState('default')
  const [dialog, setDialog] = useState(null)
  const core = useLoad(() => get(userPath(user, 'core-memory'), { expert }).catch((error) => (error.status === 404 ? { items: [] } : Promise.reject(error))), [user, expert])
  const persona = useLoad(() => get(userPath(user, 'persona'), { expert }).catch(() => null), [user, expert, core.data])
  const sections = core.data?.items ?? []
  return html`<${Page} title=${t('nav.core')} lead=${t('core.lead')} actions=${html`<${ChooseExpert} value=${expert} onChange=${setExpert} />${may('memory:write') && html`<button type="button" class="button" onClick=${() => setDialog({ kind: 'new' })}>${t('core.new')}</button>`}`}>
    <${Loaded} of=${core}>
      ${!sections.length && html`<${Empty} title=${t('core.none')}>${t('core.none_hint')}<//>`}
      <div class="cards">${sections.map((section) => html`<${Section} key=${`${section.section}:${section.version}`} section=${section} user=${user} expert=${expert} may=${may} onChanged=${core.reload} onHistory=${() => setDialog({ kind: 'history', section })} onRemove=${() => setDialog({ kind: 'remove', section })} />`)}</div>
      ${persona.data?.card && html`<h2 style=${{ margin: '1.6rem 0 .5rem' }}>${t('core.card')}</h2><div class="section-text" style=${{ margin: 0 }}><pre tabindex="0">${persona.data.card}</pre></div>`}
    <//>
    ${dialog?.kind === 'new' && html`<${New} user=${user} expert=${expert} onClose=${() => setDialog(null)} onDone=${core.reload} />`}
    ${dialog?.kind === 'history' && html`<${History} section=${dialog.section} user=${user} expert=${expert} may=${may} onClose=${() => setDialog(null)} onChanged=${core.reload} />`}
    ${dialog?.kind === 'remove' && html`<${Confirm} title=${t('core.remove', { name: dialog.section.section })} action=${t('remove')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(userPath(user, 'core-memory', dialog.section.section), { expert }); core.reload() }}><p>${t('core.remove_note')}</p><//>`}
  <//>`
}

function Section({ section, user, expert, may, onChanged, onHistory, onRemove }) {
  const [mode, setMode] = useState('form')
  const [content, setContent] = useState(section.content)
  const [json, setJson] = useState(null)
  const writes = may('memory:write')
  const dirty = json !== null || JSON.stringify(content) !== JSON.stringify(section.content)
  const save = async () => {
    let value = content
    if (json !== null) {
      try {
        value = JSON.parse(json)
      } catch (error) {
        return toast(t('core.not_json', { reason: currentLanguage() === 'en' ? error.message : '' }), { kind: 'bad' })
      }
    }
    await put(`${userPath(user, 'core-memory', section.section)}?expert=${encodeURIComponent(expert)}`, { content: value, expected_version: section.version })
    onChanged()
  }
  return html`<section class="card">
    <div class="card-head"><h2>${word('core_section', section.section)}</h2><${Chip}>${t('core.version', { n: section.version })}<//><small class="muted"><${When} at=${section.updated_at} /></small><span class="grow"></span>
      <${IconButton} icon="clock" label=${t('core.history')} onClick=${onHistory} />${writes && html`<${IconButton} icon="trash" label=${t('remove')} onClick=${onRemove} />`}</div>
    <${Tabs} value=${mode} onChange=${(next) => { setMode(next); setJson(null) }} options=${[['form', t('core.form')], ['json', 'JSON']]} />
    ${mode === 'form'
      ? html`<${Form} content=${content} onChange=${setContent} disabled=${!writes} />`
      : html`<textarea class="code" rows=${Math.min(18, JSON.stringify(content, null, 2).split('\n').length + 1)} spellcheck="false" aria-label="JSON" readonly=${!writes} value=${json ?? JSON.stringify(content, null, 2)} onInput=${(event) => setJson(event.target.value)}></textarea>`}
    <${Pins} section=${section} user=${user} expert=${expert} writes=${writes} onChanged=${onChanged} />
    ${dirty && writes && html`<div class="row end" style=${{ marginTop: '.7rem' }}><button type="button" class="button quiet" onClick=${() => { setContent(section.content); setJson(null) }}>${t('cancel')}</button><${Button} kind="primary" onClick=${save}>${t('save')}<//></div>`}
  </section>`
}

/** The values that only the user takes away, and a choice of the others. */
function Pins({ section, user, expert, writes, onChanged }) {
  const pinned = section.pinned ?? []
  const is = (one, other) => one.field === other.field && one.text === other.text
  const others = values(section.content).filter((each) => !pinned.some((other) => is(each, other)))
  const pin = async (value, on) => {
    await put(`${userPath(user, 'core-memory', section.section, 'pins')}?expert=${encodeURIComponent(expert)}`, { ...value, pinned: on })
    onChanged()
  }
  if (!pinned.length && !(writes && others.length)) return null
  return html`<div class="row" style=${{ marginTop: '.6rem' }}>
    ${pinned.map((each) => html`<${Chip} key=${`${each.field}:${each.text}`}>${t('memory.pinned')}: ${each.text}<//>${writes && html`<${IconButton} icon="close" label=${`${t('memory.unpin')}: ${each.text}`} onClick=${() => pin(each, false)} />`}`)}
    ${writes && others.length > 0 && html`<select aria-label=${t('core.pin')} value="" onChange=${(event) => { if (event.target.value !== '') pin(others[Number(event.target.value)], true) }}><option value="">${t('core.pin')}</option>${others.map((each, place) => html`<option key=${place} value=${place}>${each.field.split('.').map((name) => word('field', name)).join(' · ')}: ${each.text}</option>`)}</select>`}
  </div>`
}

/** Every text of a section with the path of its field. */
function values(content, path = []) {
  if (typeof content === 'string') return path.length ? [{ field: path.join('.'), text: content }] : []
  if (Array.isArray(content)) return content.flatMap((each) => values(each, path))
  if (content && typeof content === 'object') return Object.entries(content).flatMap(([name, each]) => values(each, [...path, name]))
  return []
}

/** Texts and lists of texts as fields; anything deeper as JSON of its own. */
function Form({ content, onChange, disabled }) {
  const [name, setName] = useState('')
  const add = () => {
    if (name.trim() && !(name.trim() in content)) onChange({ ...content, [name.trim()]: '' })
    setName('')
  }
  const without = (key) => Object.fromEntries(Object.entries(content).filter(([each]) => each !== key))
  return html`<div class="entries">
    ${Object.entries(content).map(([key, value]) => html`<div class="entry" key=${key}>
      <label for=${`field-${key}`}>${word('field', key)}</label>
      <${Value} id=${`field-${key}`} value=${value} disabled=${disabled} onChange=${(next) => onChange({ ...content, [key]: next })} />
      ${!disabled && html`<${IconButton} icon="close" label=${t('core.remove_field', { name: word('field', key) })} onClick=${() => onChange(without(key))} />`}
    </div>`)}
    ${!disabled && html`<form class="entry" onSubmit=${(event) => { event.preventDefault(); add() }}><input placeholder=${t('core.field')} aria-label=${t('core.field')} value=${name} onInput=${(event) => setName(event.target.value)} /><span></span><button class="button small" disabled=${!name.trim()}>${t('add')}</button></form>`}
  </div>`
}

function Value({ id, value, disabled, onChange }) {
  if (typeof value === 'string') return html`<input id=${id} value=${value} readonly=${disabled} onInput=${(event) => onChange(event.target.value)} />`
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) {
    return html`<textarea id=${id} rows=${Math.max(1, value.length)} readonly=${disabled} value=${value.join('\n')} title=${t('core.one_per_line')} onInput=${(event) => onChange(event.target.value.split('\n').filter((line, n, lines) => line || n === lines.length - 1))} onBlur=${() => onChange(value.filter(Boolean))}></textarea>`
  }
  const read = (event) => {
    try {
      onChange(JSON.parse(event.target.value))
    } catch {
      event.target.value = JSON.stringify(value)
    }
  }
  return html`<input id=${id} class="code" value=${JSON.stringify(value)} readonly=${disabled} onChange=${read} />`
}

function New({ user, expert, onClose, onDone }) {
  const [name, setName] = useState('human')
  const make = async () => {
    await put(`${userPath(user, 'core-memory', name)}?expert=${encodeURIComponent(expert)}`, { content: {}, expected_version: 0 })
    onDone()
  }
  return html`<${Confirm} title=${t('core.new')} action=${t('add')} kind="primary" missing=${name.trim() ? null : t('missing.name')} onConfirm=${make} onClose=${onClose}><label class="field"><span>${t('core.name')}</span><input autofocus value=${name} onInput=${(event) => setName(event.target.value)} /><small>${t('core.name_hint')}</small></label><//>`
}

function History({ section, user, expert, may, onClose, onChanged }) {
  const list = usePages((after) => get(userPath(user, 'core-memory', section.section, 'history'), { expert, after, limit: 20 }), [section])
  const back = async (version) => {
    await post(`${userPath(user, 'core-memory', section.section, 'rollback')}?expert=${encodeURIComponent(expert)}`, { version })
    onChanged()
    onClose()
  }
  return html`<${Dialog} side title=${`${t('core.history')}: ${word('core_section', section.section)}`} onClose=${onClose}>
    <${Loaded} of=${list}>
      ${list.items?.map((change) => html`<section key=${change.version}>
        <div class="card-head"><${Chip}>${t('core.version', { n: change.version })}<//><span>${word('actor', change.actor)}</span><small class="muted"><${When} at=${change.at} /></small><span class="grow"></span>${may('memory:write') && change.version !== section.version && html`<${Button} kind="small" onClick=${() => back(change.version)}>${t('core.back')}<//>`}</div>
        <${Difference} before=${change.old ?? {}} after=${change.new ?? {}} />
      </section>`)}
      <${More} of=${list} />
    <//>
  <//>`
}

/** What was added and removed between two versions, field by field. */
export function Difference({ before, after }) {
  const lines = []
  const show = (key, value) => `${word('field', key)}: ${brief(value)}`
  for (const key of new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])) {
    const [old, now] = [before?.[key], after?.[key]]
    if (JSON.stringify(old) === JSON.stringify(now)) continue
    if (old !== undefined) lines.push(html`<div class="removed">− ${show(key, old)}</div>`)
    if (now !== undefined) lines.push(html`<div class="added">+ ${show(key, now)}</div>`)
  }
  return html`<div class="diff">${lines}</div>`
}
