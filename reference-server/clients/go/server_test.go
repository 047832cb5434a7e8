package kubeprooftest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kubeprooftest "github.com/kubeproof/kubeproof/reference-server/clients/go"
)

// create creates a config map, and returns the status code.
func create(t *testing.T, server *kubeprooftest.Server, token string) int {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(server.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	body := strings.NewReader(`{"metadata":{"name":"first"}}`)
	url := server.URL + "/api/v1/namespaces/default/configmaps"
	request, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestEachServerHasItsOwnState(t *testing.T) {
	for range [2]int{} {
		server := kubeprooftest.Start(t)
		if code := create(t, server, server.Token); code != http.StatusCreated {
			t.Errorf("expected 201, got %d", code)
		}
		if code := create(t, server, server.Token); code != http.StatusConflict {
			t.Errorf("expected 409, got %d", code)
		}
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	server := kubeprooftest.Start(t, kubeprooftest.WithoutTLS(),
		kubeprooftest.WithFaults("already-exists-as-bad-request"),
		kubeprooftest.WithUserToken("jane"))
	if !strings.HasPrefix(server.URL, "http://") || len(server.CA) != 0 {
		t.Errorf("expected no TLS, got %s", server.URL)
	}
	if code := create(t, server, "jane"); code != http.StatusForbidden {
		t.Errorf("expected 403, got %d", code)
	}
	create(t, server, server.Token)
	if code := create(t, server, server.Token); code != http.StatusBadRequest {
		t.Errorf("expected 400, got %d", code)
	}
}

func TestObjectsOfFilesExist(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects.yaml")
	object := "kind: ConfigMap\napiVersion: v1\nmetadata: {name: first, namespace: default}\n"
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	server := kubeprooftest.Start(t, kubeprooftest.WithObjects(file))
	if code := create(t, server, server.Token); code != http.StatusConflict {
		t.Errorf("expected 409, got %d", code)
	}
}

func TestAServerStopsOnce(t *testing.T) {
	server, err := kubeprooftest.StartIn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for range [2]int{} {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := http.Get(server.URL); err == nil {
		t.Error("expected a server that has stopped")
	}
}

func TestErrorsNameTheirCause(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for expected, options := range map[string][]kubeprooftest.Option{
		"no fault has the name": {kubeprooftest.WithFaults("no-such-fault")},
		"not ready after 200ms": {
			kubeprooftest.WithBinary(slow),
			kubeprooftest.WithTimeout(200 * time.Millisecond),
		},
		"cannot start /nonexistent": {kubeprooftest.WithBinary("/nonexistent")},
	} {
		_, err := kubeprooftest.StartIn(t.TempDir(), options...)
		if err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("expected %q, got %v", expected, err)
		}
	}
}
