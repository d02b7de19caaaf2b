{{- define "supercargo.labels" -}}
app.kubernetes.io/name: supercargo
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "supercargo.lease" -}}
{{- if .Values.leaseName }}{{ .Values.leaseName }}
{{- else if eq .Values.schedulerName "default-scheduler" }}kube-scheduler
{{- else }}{{ .Release.Name }}
{{- end }}
{{- end }}
