// Package kubeprooftest starts the reference server of kubeproof, an API server in memory, in tests.
//
// It needs the binary kubeproof in PATH, or its path in the variable KUBEPROOF_BINARY. The module
// restconfig returns a rest.Config of client-go.
package kubeprooftest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	ready       = "listening on "
	stopTimeout = 5 * time.Second
)

// Server is a running server.
type Server struct {
	// URL is the address, such as https://127.0.0.1:41234.
	URL string
	// Token is the bearer token of the administrator.
	Token string
	// CA is the certificate authority in PEM. It is empty without TLS.
	CA []byte
	// Kubeconfig is the path of a kubeconfig of the administrator.
	Kubeconfig string

	process *exec.Cmd
	exited  chan error
}

// Option changes how a server starts.
type Option func(*settings)

type settings struct {
	binary    string
	tls       bool
	timeout   time.Duration
	arguments []string
}

// WithoutTLS serves HTTP. client-go sends tokens over HTTP, too, but kubectl does not.
func WithoutTLS() Option {
	return func(s *settings) { s.tls = false }
}

// WithFaults enables deliberate bugs. `kubeproof serve --list-faults` lists them.
func WithFaults(names ...string) Option {
	return WithArguments(repeated("--fault", names)...)
}

// WithObjects creates the objects of these files before the server is ready.
func WithObjects(files ...string) Option {
	return WithArguments(repeated("--load", files)...)
}

// WithUserToken adds a user without permissions.
func WithUserToken(token string) Option {
	return WithArguments("--user-token", token)
}

// WithArguments adds arguments of `kubeproof serve`.
func WithArguments(arguments ...string) Option {
	return func(s *settings) { s.arguments = append(s.arguments, arguments...) }
}

// WithBinary sets the path of the binary.
func WithBinary(path string) Option {
	return func(s *settings) { s.binary = path }
}

// WithTimeout sets how long the server may take to be ready. The default is 10 seconds.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.timeout = timeout }
}

// Start starts a server with its own state on a free port. The server stops when the test and its
// subtests end. The test fails at once if the server does not start.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	server, err := StartIn(t.TempDir(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("cannot stop kubeproof serve: %v", err)
		}
	})
	return server
}

// StartIn starts a server for a program that is no test, or for TestMain. It writes its files to
// the directory. The caller stops the server.
func StartIn(directory string, options ...Option) (*Server, error) {
	chosen := settings{tls: true, timeout: 10 * time.Second}
	for _, option := range options {
		option(&chosen)
	}
	binary, err := findBinary(chosen.binary)
	if err != nil {
		return nil, err
	}
	server := &Server{
		Kubeconfig: filepath.Join(directory, "kubeconfig"),
		exited:     make(chan error, 1),
	}
	arguments := []string{
		"serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", server.Kubeconfig,
	}
	if chosen.tls {
		arguments = append(arguments, "--tls")
	}
	var log bytes.Buffer
	server.process = exec.Command(binary, append(arguments, chosen.arguments...)...)
	server.process.Stderr = &log
	output, err := server.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot read the output of %s: %w", binary, err)
	}
	if err := server.process.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", binary, err)
	}
	lines := make(chan string, 1)
	go func() {
		// An empty line means that the server exited.
		line, _ := bufio.NewReader(output).ReadString('\n')
		lines <- line
		server.exited <- server.process.Wait()
	}()
	select {
	case line := <-lines:
		if !strings.HasPrefix(line, ready) {
			err := <-server.exited
			return nil, fmt.Errorf("kubeproof serve ended (%v): %s%s", err, line, log.Bytes())
		}
		server.URL = strings.TrimSpace(strings.TrimPrefix(line, ready))
	case <-time.After(chosen.timeout):
		_ = server.process.Process.Kill()
		<-server.exited
		return nil, fmt.Errorf("kubeproof serve was not ready after %v: %s", chosen.timeout, &log)
	}
	if err := server.readKubeconfig(); err != nil {
		_ = server.Stop()
		return nil, err
	}
	return server, nil
}

// Stop stops the server. A second call does nothing.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	process := s.process.Process
	s.process = nil
	if err := process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-s.exited:
		return err
	case <-time.After(stopTimeout):
		err := process.Kill()
		<-s.exited
		return err
	}
}

// kubeconfig has the fields that the server writes.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			CA []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Token string `json:"token"`
		} `json:"user"`
	} `json:"users"`
}

func (s *Server) readKubeconfig() error {
	text, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		return err
	}
	var config kubeconfig
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s: %w", s.Kubeconfig, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return fmt.Errorf("%s: expected one cluster and one user", s.Kubeconfig)
	}
	s.CA, s.Token = config.Clusters[0].Cluster.CA, config.Users[0].User.Token
	return nil
}

func findBinary(path string) (string, error) {
	if path == "" {
		path = os.Getenv("KUBEPROOF_BINARY")
	}
	if path != "" {
		return path, nil
	}
	path, err := exec.LookPath("kubeproof")
	if err != nil {
		return "", fmt.Errorf("expected kubeproof in PATH or KUBEPROOF_BINARY: %w", err)
	}
	return path, nil
}

func repeated(flag string, values []string) []string {
	var words []string
	for _, value := range values {
		words = append(words, flag, value)
	}
	return words
}
