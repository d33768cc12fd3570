{{/* Name of the chart, in labels. */}}
{{- define "warmfront.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of all names. 50 characters leave room for "-forecaster" in a name of 63. */}}
{{- define "warmfront.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- $name := include "warmfront.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that select one component's pods; they may never change. Argument: dict "root" $ "component" NAME. */}}
{{- define "warmfront.selectorLabels" -}}
app.kubernetes.io/name: {{ include "warmfront.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* All labels of an object. Argument: dict "root" $ "component" NAME, and at will "labels": more of them. */}}
{{- define "warmfront.labels" -}}
{{ include "warmfront.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with merge (dict) (default (dict) .labels) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Name, labels and annotations of an object. Argument: dict "root" $ "component" NAME, and at will "name", "namespace", "annotations", "labels", "clusterScoped". */}}
{{- define "warmfront.metadata" -}}
name: {{ default (printf "%s-%s" (include "warmfront.fullname" .root) .component) .name }}
{{- if not .clusterScoped }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- include "warmfront.labels" . | nindent 2 }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* An image reference. Argument: dict "root" $ "image" VALUES. */}}
{{- define "warmfront.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end }}
{{- end }}

{{/* Whether credentials of Prometheus are mounted: "true" or nothing. */}}
{{- define "warmfront.prometheus.mounted" -}}
{{- $p := .Values.prometheus }}
{{- if and $p.ca.configMap $p.ca.secret }}
{{- fail "prometheus.ca.configMap and prometheus.ca.secret are both set: empty one of them" }}
{{- end }}
{{- if or $p.tokenSecret.name $p.ca.configMap $p.ca.secret }}true{{ end }}
{{- end }}

{{/* Variables that connect a component to Prometheus. Argument: dict "root" $ "prefix" PREFIX. */}}
{{- define "warmfront.prometheus.env" -}}
{{- $p := .root.Values.prometheus -}}
- name: {{ .prefix }}PROMETHEUS_URL
  value: {{ $p.url | quote }}
{{- if $p.tokenSecret.name }}
- name: {{ .prefix }}PROMETHEUS_TOKEN_FILE
  value: /etc/warmfront/prometheus/token
{{- end }}
{{- if or $p.ca.configMap $p.ca.secret }}
- name: {{ .prefix }}PROMETHEUS_CA_FILE
  value: /etc/warmfront/prometheus/ca.crt
{{- end }}
{{- if $p.tenant.header }}
- name: {{ .prefix }}PROMETHEUS_TENANT_HEADER
  value: {{ $p.tenant.header | quote }}
- name: {{ .prefix }}PROMETHEUS_TENANT
  value: {{ required "prometheus.tenant.header is set and prometheus.tenant.value is not: set it" $p.tenant.value | quote }}
{{- end }}
{{- end }}

{{/* The volume with the credentials of Prometheus. */}}
{{- define "warmfront.prometheus.volume" -}}
{{- $p := .Values.prometheus -}}
- name: prometheus
  projected:
    defaultMode: 0440
    sources:
      {{- if $p.tokenSecret.name }}
      - secret:
          name: {{ $p.tokenSecret.name }}
          items: [{key: {{ $p.tokenSecret.key | quote }}, path: token}]
      {{- end }}
      {{- if $p.ca.configMap }}
      - configMap:
          name: {{ $p.ca.configMap }}
          items: [{key: {{ $p.ca.key | quote }}, path: ca.crt}]
      {{- end }}
      {{- if $p.ca.secret }}
      - secret:
          name: {{ $p.ca.secret }}
          items: [{key: {{ $p.ca.key | quote }}, path: ca.crt}]
      {{- end }}
{{- end }}

{{/* Labels and annotations of a component's pods. Argument: dict "root" $ "component" NAME "values" VALUES "port" METRICS_PORT. */}}
{{- define "warmfront.podMetadata" -}}
{{- $scrape := dict }}
{{- if not .root.Values.podMonitor.enabled }}
{{- $scrape = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .port) }}
{{- end -}}
labels:
  {{- include "warmfront.labels" (dict "root" .root "component" .component "labels" .values.podLabels) | nindent 2 }}
{{- with merge (dict) .values.podAnnotations $scrape .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Where a component's pods run, and as whom. Argument: dict "root" $ "values" VALUES. */}}
{{- define "warmfront.podSettings" -}}
# Off, since the variables of a Service named like a component collide with the component's own settings.
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What restricted Pod Security asks of a container, and the mounts and resources of ours. Argument: dict "root" $ "values" VALUES. */}}
{{- define "warmfront.containerSettings" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if include "warmfront.prometheus.mounted" .root }}
  - {name: prometheus, mountPath: /etc/warmfront/prometheus, readOnly: true}
  {{- end }}
{{- with .values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The volumes of a component. */}}
{{- define "warmfront.volumes" -}}
volumes:
  - {name: tmp, emptyDir: {}}
  {{- if include "warmfront.prometheus.mounted" . }}
  {{- include "warmfront.prometheus.volume" . | nindent 2 }}
  {{- end }}
{{- end }}
