// Package restconfig starts the reference server of kubeproof in a test, and returns a rest.Config
// for clients of client-go and controller-runtime.
package restconfig

import (
	"testing"

	"k8s.io/client-go/rest"

	kubeprooftest "github.com/kubeproof/kubeproof/reference-server/clients/go"
)

// Start starts a server as kubeprooftest.Start does, and returns the configuration of its
// administrator.
func Start(t testing.TB, options ...kubeprooftest.Option) *rest.Config {
	t.Helper()
	return Of(kubeprooftest.Start(t, options...))
}

// Of returns the configuration of the administrator of a server.
func Of(server *kubeprooftest.Server) *rest.Config {
	return &rest.Config{
		Host:            server.URL,
		BearerToken:     server.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA},
		// The server has no limit that clients must respect.
		QPS: -1,
	}
}
