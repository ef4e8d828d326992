// Package telemetry exports the metrics of a service to Prometheus (Metrics) and its traces to
// OpenTelemetry (Traces), with the names of OpenTelemetry's conventions. The values of labels come
// from fixed lists, so that requests cannot add values.
package telemetry

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/quota"
)

// other replaces values that are not in the list of a label.
const other = "_OTHER"

// buckets are in seconds, as the conventions for http.server.request.duration advise.
var buckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// Metrics are the metrics of one service.
type Metrics struct {
	registry  *prometheus.Registry
	durations *prometheus.HistogramVec
	active    *prometheus.GaugeVec
	decisions *prometheus.CounterVec
	limits    *prometheus.CounterVec
	upstreams *prometheus.HistogramVec
	events    []string
	day       *day
}

// NewMetrics registers the metrics of requests, of decisions with these events, and of the Go
// runtime and the process. now is the clock of LastDay.
func NewMetrics(now func() time.Time, events ...string) *Metrics {
	m := &Metrics{
		day:      &day{now: now, routes: map[string]*[daySlots]Slot{}},
		registry: prometheus.NewRegistry(),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_server_request_duration_seconds",
			Help: "Duration of HTTP requests; a stream counts until its end.", Buckets: buckets,
		}, []string{"http_request_method", "http_route", "http_response_status_code"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "http_server_active_requests", Help: "HTTP requests that are not finished.",
		}, []string{"http_request_method"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pasteport_decisions_total", Help: "Decisions of the authorization server, by audit event.",
		}, []string{"event"}),
		limits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pasteport_limits_total",
			Help: "Requests that a limit slowed or refused, and sessions, connections and documents that it evicted.",
		}, []string{"limit", "effect"}),
		upstreams: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_client_request_duration_seconds",
			Help:    "Duration of requests to the upstreams of a gateway, until the header of the response.",
			Buckets: buckets,
		}, []string{"resource", "http_request_method", "http_response_status_code", "error_type"}),
		events: events,
	}
	for _, limit := range quota.Limits() {
		for _, effect := range quota.Effects() {
			m.limits.WithLabelValues(string(limit), string(effect)) // so that the series exists from the start
		}
	}
	for _, event := range events {
		m.decisions.WithLabelValues(event) // so that the series exists from the start
	}
	m.registry.MustRegister(m.durations, m.active, m.decisions, m.limits, m.upstreams, collectors.NewGoCollector(),
		collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Gauge registers a gauge whose value is read at each scrape.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter registers a counter whose value is read at each scrape.
func (m *Metrics) Counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// UpstreamGauge is the state of the upstream of a resource.
type UpstreamGauge struct {
	Resource, State string
	Up              bool
}

// Upstreams registers gauges that are read at each scrape.
func (m *Metrics) Upstreams(read func() []UpstreamGauge) {
	m.registry.MustRegister(upstreamCollector(read))
}

var (
	upstreamUp = prometheus.NewDesc("pasteport_upstream_up",
		"1 while the upstream of a gateway works, 0 while it does not.", []string{"resource"}, nil)
	upstreamState = prometheus.NewDesc("pasteport_upstream_state",
		"1 for the state that the last check of an upstream has found.", []string{"resource", "state"}, nil)
)

type upstreamCollector func() []UpstreamGauge

// Describe implements prometheus.Collector.
func (upstreamCollector) Describe(all chan<- *prometheus.Desc) {
	all <- upstreamUp
	all <- upstreamState
}

// Collect implements prometheus.Collector.
func (read upstreamCollector) Collect(all chan<- prometheus.Metric) {
	for _, g := range read() {
		up := 0.0
		if g.Up {
			up = 1
		}
		all <- prometheus.MustNewConstMetric(upstreamUp, prometheus.GaugeValue, up, g.Resource)
		all <- prometheus.MustNewConstMetric(upstreamState, prometheus.GaugeValue, 1, g.Resource, g.State)
	}
}

// Decided counts one decision.
func (m *Metrics) Decided(event string) {
	if !slices.Contains(m.events, event) {
		event = other
	}
	m.decisions.WithLabelValues(event).Inc()
}

// Limit counts one effect of a limit. It is a quota.Observer.
func (m *Metrics) Limit(limit quota.Limit, effect quota.Effect) {
	m.limits.WithLabelValues(string(limit), string(effect)).Inc()
}

// Upstream records a request to the upstream of a resource. status is 0 without a response.
func (m *Metrics) Upstream(resource, method string, status int, took time.Duration) {
	code, failure := strconv.Itoa(status), ""
	switch {
	case status == 0:
		code, failure = "", other
	case status >= http.StatusInternalServerError:
		failure = code
	}
	m.upstreams.WithLabelValues(resource, method, code, failure).Observe(took.Seconds())
}

// Measure times every request to the site. It calls Echo's error handler itself, which sets the
// status of an error. The label of a route is its template, "" for a request without a route.
func (m *Metrics) Measure(site *echo.Echo) {
	site.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			method, began := methodOf(c.Request()), time.Now()
			active := m.active.WithLabelValues(method)
			active.Inc()
			defer active.Dec()
			if err := next(c); err != nil {
				c.Error(err)
			}
			status := c.Response().Status
			m.durations.WithLabelValues(method, c.Path(), strconv.Itoa(status)).Observe(time.Since(began).Seconds())
			m.day.count(method, c.Path(), status, attempt.From(c.Request().Context()).Rule())
			return nil
		}
	})
}

// methods are the known methods of the conventions.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY",
}

func methodOf(r *http.Request) string {
	if slices.Contains(methods, r.Method) {
		return r.Method
	}
	return other
}
