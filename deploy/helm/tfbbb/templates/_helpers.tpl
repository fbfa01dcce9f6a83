{{- define "tfbbb.name" -}}
{{- if contains "tfbbb" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-tfbbb{{ end }}
{{- end }}

{{- define "tfbbb.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "tfbbb.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "tfbbb.selector" -}}
app.kubernetes.io/name: tfbbb
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tfbbb.labels" -}}
{{ include "tfbbb.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The pod of a part: a dict with `root`, `part` (its values), `component`, the
`repository` of its image and `variables`, which the part needs. */ -}}
{{- define "tfbbb.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "tfbbb.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  serviceAccountName: {{ include "tfbbb.serviceAccount" $root }}
  automountServiceAccountToken: false
  # Otherwise Kubernetes sets TFBBB_PORT and others, which are no settings.
  enableServiceLinks: false
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  # The service saves its jobs and finishes its requests.
  terminationGracePeriodSeconds: 60
  {{- if eq .component "api" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tfbbb.selector" $root | nindent 10 }}
          app.kubernetes.io/component: api
  {{- end }}
  containers:
    - name: {{ .component }}
      image: "{{ .repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      {{- if eq .component "worker" }}
      command: [tfbbb, worker]
      {{- end }}
      envFrom:
        - secretRef: {name: {{ $root.Values.existingSecret | quote }}}
      env:
        - name: TFBBB_STORE
          value: {{ $root.Values.store | quote }}
        # Pods are reached through the ingress, which tells them that the client used TLS.
        - name: FORWARDED_ALLOW_IPS
          value: "*"
        {{- range $name, $value := merge (dict) .variables .part.environment $root.Values.environment }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      {{- if eq .component "api" }}
      ports:
        - name: http
          containerPort: 8000
      # The service waits up to a minute for the database before it answers.
      startupProbe:
        httpGet: {path: /health/live, port: http}
        periodSeconds: 5
        failureThreshold: 36
      livenessProbe:
        httpGet: {path: /health/live, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      # Without the database, no service is ready, but all replicas predict.
      readinessProbe:
        httpGet: {path: /health/predicting, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      lifecycle:
        preStop:
          # Until then, proxies may still send requests.
          exec: {command: [sleep, "5"]}
      {{- end }}
      resources:
        {{- toYaml .part.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /app/.tfbbb}
        - {name: temporary, mountPath: /tmp}
  volumes:
    - name: data
      emptyDir: {sizeLimit: {{ .part.dataSize | quote }}}
    - name: temporary
      emptyDir: {}
  {{- with .part.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .part.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .part.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
