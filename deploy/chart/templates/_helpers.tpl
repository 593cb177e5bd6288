{{- define "anamnesis.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* Labels that never change; of a list: the root and the component. */ -}}
{{- define "anamnesis.selector" -}}
app.kubernetes.io/name: anamnesis
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "anamnesis.labels" -}}
{{ include "anamnesis.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
{{- end -}}

{{- define "anamnesis.image" -}}
image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- /* What all pods have in common. Service links would set ANAMNESIS_PORT to tcp://… where a Service is called anamnesis. */ -}}
{{- define "anamnesis.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Where the pods of one component may run; of a list: the root and the component. */ -}}
{{- define "anamnesis.placement" -}}
{{- $values := index (index . 0).Values (index . 1) -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "anamnesis.selector" . | nindent 8 }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "anamnesis.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "anamnesis.fromSecret" -}}
valueFrom:
  secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end -}}

{{- /* Environment of API and workers. */ -}}
{{- define "anamnesis.environment" -}}
- name: ANAMNESIS_WORKER
  value: external
- name: ANAMNESIS_DATABASE_URL
  {{- include "anamnesis.fromSecret" .Values.postgresql.urlSecret | nindent 2 }}
- name: ANAMNESIS_MILVUS_URI
  value: {{ required "milvus.uri is needed: http://host:port of a Milvus server" .Values.milvus.uri | quote }}
{{- if .Values.milvus.tokenSecret.name }}
- name: ANAMNESIS_MILVUS_TOKEN
  {{- include "anamnesis.fromSecret" .Values.milvus.tokenSecret | nindent 2 }}
{{- end }}
- name: ANAMNESIS_REDIS_URL
{{- if .Values.redis.urlSecret.name }}
  {{- include "anamnesis.fromSecret" .Values.redis.urlSecret | nindent 2 }}
{{- else }}
  value: {{ required "redis.url or redis.urlSecret.name is needed: redis://host:port/0" .Values.redis.url | quote }}
{{- end }}
{{- if .Values.encryption.keysClaim }}
- name: ANAMNESIS_ENCRYPTION
  value: "on"
- name: ANAMNESIS_ENCRYPTION_KEYS_DIR
  value: /keys
- name: ANAMNESIS_ENCRYPTION_KEY_FILE
  value: /etc/anamnesis/master-key/{{ .Values.encryption.masterKeySecret.key }}
{{- end }}
{{- if .Values.receiptKeySecret.name }}
- name: ANAMNESIS_RECEIPT_KEY_FILE
  value: /etc/anamnesis/receipt-key/{{ .Values.receiptKeySecret.key }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $secret := .Values.secretSettings }}
- name: {{ $name }}
  {{- include "anamnesis.fromSecret" $secret | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Of a list: the root and the component. /tmp, /data and /keys alone can be written; only /keys is kept. */ -}}
{{- define "anamnesis.mounts" -}}
{{- $secrets := include "anamnesis.fileSecrets" . | fromYaml -}}
volumeMounts:
  - {name: temporary, mountPath: /tmp}
  - {name: data, mountPath: /data}
  {{- range $name, $secret := $secrets }}
  - {name: {{ $name }}, mountPath: /etc/anamnesis/{{ $name }}, readOnly: true}
  {{- end }}
  {{- if and (ne (index . 1) "migration") (index . 0).Values.encryption.keysClaim }}
  - {name: keys, mountPath: /keys}
  {{- end }}
{{- end -}}

{{- /* Of a list: the root, the component, and the size of /tmp. */ -}}
{{- define "anamnesis.volumes" -}}
{{- $secrets := include "anamnesis.fileSecrets" . | fromYaml -}}
volumes:
  - name: temporary
    emptyDir: {sizeLimit: {{ index . 2 }}}
  - name: data
    emptyDir: {sizeLimit: 64Mi}
  {{- range $name, $secret := $secrets }}
  - name: {{ $name }}
    secret:
      secretName: {{ $secret.name | quote }}
      items:
        - {key: {{ $secret.key | quote }}, path: {{ $secret.key | quote }}}
  {{- end }}
  {{- if and (ne (index . 1) "migration") (index . 0).Values.encryption.keysClaim }}
  - name: keys
    persistentVolumeClaim: {claimName: {{ (index . 0).Values.encryption.keysClaim | quote }}}
  {{- end }}
{{- end -}}

{{- /* The Secrets that a component of a list reads as files, by the name of their volume. */ -}}
{{- define "anamnesis.fileSecrets" -}}
{{- $values := (index . 0).Values -}}
{{- $secrets := dict -}}
{{- if ne (index . 1) "migration" -}}
{{- with $values.receiptKeySecret }}{{ if .name }}{{ $_ := set $secrets "receipt-key" . }}{{ end }}{{ end -}}
{{- if $values.encryption.keysClaim -}}
{{- $_ := required "encryption.masterKeySecret.name is needed with encryption.keysClaim" $values.encryption.masterKeySecret.name -}}
{{- $_ := set $secrets "master-key" $values.encryption.masterKeySecret -}}
{{- end -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}
