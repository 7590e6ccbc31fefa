{{- define "sluice.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name }}{{ end -}}
{{- end }}

{{- define "sluice.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels that find the pods of one program: "root" and "part" are given. */}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ include "sluice.tag" .root | quote }}
{{- end }}

{{/* What all pods have. */}}
{{- define "sluice.pod" -}}
# Otherwise Kubernetes would set SLUICE_… variables of its own, for Services of that name.
enableServiceLinks: false
# The pod's own process 1, not ours: a SIGTERM before our interpreter runs would be lost otherwise.
shareProcessNamespace: true
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "sluice.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "sluice.secretEnv" -}}
- {name: SLUICE_SECRET, valueFrom: {secretKeyRef: {name: {{ .Values.secret.name }}, key: {{ .Values.secret.key }}}}}
{{- end }}

{{- define "sluice.redisEnv" -}}
{{- if .Values.redis.secretName -}}
- {name: SLUICE_REDIS, valueFrom: {secretKeyRef: {name: {{ .Values.redis.secretName }}, key: {{ .Values.redis.secretKey }}}}}
{{- else -}}
- {name: SLUICE_REDIS, value: {{ .Values.redis.url | quote }}}
{{- end }}
{{- end }}
