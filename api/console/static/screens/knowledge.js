// Knowledge bases: documents with their progress, and what a question finds in them.

import { get, patch, post, remove } from '../api.js'
import { bytes, percent, t } from '../i18n.js'
import { Button, Chip, Confirm, Empty, Field, html, IconButton, Loaded, messageOf, Meter, More, Page, useLoad, usePages, useRef, useState, When } from '../ui.js'
import { go } from '../shell.js'
import { DOCUMENTS, lines, sendDocument, useForm, useRefresh } from './parts.js'

export const screen = 'knowledge'
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/
const path = (prefix, ...rest) => ['/api/v1/knowledge-bases', encodeURIComponent(prefix), ...rest].join('/')

export function Screen({ rest, may }) {
  return rest[0] ? html`<${Base} key=${rest[0]} prefix=${rest[0]} may=${may} />` : html`<${Bases} may=${may} />`
}

function Bases({ may }) {
  const list = usePages((after) => get('/api/v1/knowledge-bases', { after, limit: 50 }))
  const [making, setMaking] = useState(false)
  return html`<${Page} title=${t('nav.knowledge')} lead=${t('knowledge.lead')} actions=${may('admin') && html`<button type="button" class="button primary" onClick=${() => setMaking(true)}>${t('knowledge.new')}</button>`}>
    <${Loaded} of=${list} empty=${t('knowledge.none')} emptyText=${t('knowledge.none_hint')}>
      <div class="grid">${list.items?.map((base) => html`<a key=${base.prefix} class="card" href=${`#/knowledge/${base.prefix}`} style=${{ textDecoration: 'none', color: 'inherit' }}><h2>${base.prefix}</h2><p class="muted">${base.description}</p><div class="facts"><span>${t('knowledge.counts', base)}</span>${base.waiting > 0 && html`<${Chip} kind="note">${t('knowledge.waiting', { n: base.waiting })}<//>`}</div></a>`)}</div>
      <${More} of=${list} />
    <//>
    ${making && html`<${Edit} onClose=${() => setMaking(false)} onDone=${(base) => go('knowledge', base.prefix)} />`}
  <//>`
}

function Edit({ base, onClose, onDone }) {
  const [form, set] = useForm({ prefix: '', description: '', keywords: '', system_prompt: '', ...base, ...(base ? { keywords: base.keywords.join('\n') } : {}), handler: base?.handler ?? '' })
  const save = async () => {
    const body = { description: form.description, keywords: lines(form.keywords), system_prompt: form.system_prompt, handler: form.handler || null }
    onDone(base ? await patch(path(base.prefix), body) : await post('/api/v1/knowledge-bases', { ...body, prefix: form.prefix }))
  }
  return html`<${Confirm} title=${base ? base.prefix : t('knowledge.new')} action=${t('save')} kind="primary" missing=${!base && !NAME.test(form.prefix) ? t('missing.prefix') : !form.description.trim() ? t('missing.about') : null} onConfirm=${save} onClose=${onClose}>
    ${!base && html`<${Field} required label=${t('knowledge.prefix')} hint=${t('knowledge.prefix_hint')}><input autofocus value=${form.prefix} onInput=${set('prefix')} /><//>`}
    <${Field} required label=${t('knowledge.about')}><textarea rows="2" value=${form.description} onInput=${set('description')}></textarea><//>
    <${Field} label=${t('knowledge.keywords')} hint=${t('core.one_per_line')}><textarea rows="2" value=${form.keywords} onInput=${set('keywords')}></textarea><//>
    <label class="check"><input type="checkbox" checked=${form.handler === 'cited'} onChange=${(event) => set('handler')(event.target.checked ? 'cited' : '')} />${t('knowledge.cited')}</label>
  <//>`
}

function Base({ prefix, may }) {
  const base = useLoad(() => get(path(prefix)), [prefix])
  const documents = usePages((after) => get(path(prefix, 'documents'), { after, limit: 100 }), [prefix])
  const [uploads, setUploads] = useState([])
  const [dialog, setDialog] = useState(null)
  const [over, setOver] = useState(false)
  const input = useRef()
  useRefresh(() => { base.reload(); documents.reload() }, base.data?.waiting > 0)
  const take = async (files) => {
    for (const file of files) {
      const entry = { name: file.name, size: file.size }
      const note = (change) => setUploads((before) => [...before.filter((each) => each.name !== file.name), Object.assign(entry, change)])
      note({ state: 'running' })
      try {
        const { status } = await sendDocument(path(prefix, 'documents'), file)
        note({ state: status })
      } catch (error) {
        note({ state: 'failed', reason: messageOf(error) })
      }
    }
    base.reload()
    documents.reload()
  }
  return html`<${Page} title=${prefix} lead=${base.data?.description} actions=${html`<a class="button quiet" href="#/knowledge">${t('knowledge.all')}</a>${may('admin') && base.data && html`<button type="button" class="button" onClick=${() => setDialog('edit')}>${t('edit')}</button><button type="button" class="button danger" onClick=${() => setDialog('remove')}>${t('remove')}</button>`}`}>
    ${may('admin') && html`<div class=${over ? 'drop over' : 'drop'} onDragOver=${(event) => { event.preventDefault(); setOver(true) }} onDragLeave=${() => setOver(false)} onDrop=${(event) => { event.preventDefault(); setOver(false); take([...event.dataTransfer.files]) }}>
      <input ref=${input} type="file" multiple hidden accept=${DOCUMENTS} onChange=${(event) => { take([...event.target.files]); event.target.value = '' }} />
      ${t('knowledge.drop')} <button type="button" class="link" onClick=${() => input.current.click()}>${t('knowledge.choose')}</button></div>`}
    ${uploads.map((each) => html`<p key=${each.name} class="row"><span class="clip">${each.name}</span><small class="muted">${bytes(each.size)}</small>${each.state === 'running' ? html`<span class="spinner"></span>` : html`<${Chip} kind=${each.state === 'failed' ? 'bad' : 'good'}>${t(`knowledge.${each.state}`)}<//>`}${each.reason && html`<small class="bad">${each.reason}</small>`}</p>`)}
    ${base.data?.waiting > 0 && html`<p class="muted">${t('knowledge.waiting', { n: base.data.waiting })}</p><progress max=${base.data.chunks} value=${base.data.chunks - base.data.waiting}></progress>`}
    <${Search} prefix=${prefix} />
    <h2 style=${{ margin: '1.4rem 0 .6rem' }}>${t('knowledge.documents')}</h2>
    <${Loaded} of=${documents} empty=${t('knowledge.no_documents')}>
      <div class="scroll-x" tabindex="0"><table><thead><tr><th>${t('knowledge.document')}</th><th class="num">${t('knowledge.passages')}</th><th class="num">${t('knowledge.size')}</th><th>${t('knowledge.taken_in')}</th><th><span class="unseen">${t('actions')}</span></th></tr></thead><tbody>
        ${documents.items?.map((each) => html`<tr key=${each.id}><td><b>${each.source}</b>${each.title !== each.source && html`<br /><small class="muted">${each.title}</small>`}${each.left_out?.length > 0 && html`<br /><small class="muted">${t('knowledge.left_out', { what: each.left_out.join('; ') })}</small>`}</td><td class="num">${each.chunk_count}${each.waiting > 0 && html` <small class="muted">(${each.waiting})</small>`}</td><td class="num">${bytes(each.byte_size)}</td><td><${When} at=${each.ingested_at} /></td><td>${may('admin') && html`<${IconButton} icon="trash" label=${t('remove')} onClick=${() => setDialog(each)} />`}</td></tr>`)}
      </tbody></table></div><${More} of=${documents} />
    <//>
    ${dialog === 'edit' && html`<${Edit} base=${base.data} onClose=${() => setDialog(null)} onDone=${base.reload} />`}
    ${dialog === 'remove' && html`<${Confirm} title=${t('knowledge.remove', { name: prefix })} action=${t('remove')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(path(prefix)); go('knowledge') }}><p>${t('knowledge.remove_note', base.data)}</p><//>`}
    ${dialog?.id && html`<${Confirm} title=${t('knowledge.remove', { name: dialog.source })} action=${t('remove')} onClose=${() => setDialog(null)} onConfirm=${async () => { await remove(path(prefix, 'documents', dialog.id)); documents.reload(); base.reload() }} />`}
  <//>`
}

function Search({ prefix }) {
  const [query, setQuery] = useState('')
  const [found, setFound] = useState(null)
  const search = async () => setFound(await post(path(prefix, 'search'), { query, top_k: 5 }))
  return html`<form class="filters" onSubmit=${(event) => event.preventDefault()}><input type="search" placeholder=${t('knowledge.try')} aria-label=${t('knowledge.try')} value=${query} onInput=${(event) => setQuery(event.target.value)} /><${Button} type="submit" disabled=${!query.trim()} onClick=${search}>${t('recall.search')}<//></form>
    ${found && (found.items.length ? html`<ul class="recalled">${found.items.map((each) => html`<li class="item"><p>${each.text}</p><div class="facts"><small><b>${each.document}</b> ${each.heading}${each.page ? ` · ${t('page', { n: each.page })}` : ''}</small><span class="grow"></span><${Meter} value=${each.score} label=${percent(each.score)} /></div></li>`)}</ul>` : html`<${Empty} title=${t('knowledge.nothing_found')} />`)}`
}
