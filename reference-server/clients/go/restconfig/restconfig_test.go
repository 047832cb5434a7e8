package restconfig_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	kubeprooftest "github.com/kubeproof/kubeproof/reference-server/clients/go"
	"github.com/kubeproof/kubeproof/reference-server/clients/go/restconfig"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string]string{"key": "value"},
	}
}

func TestAnInformerSeesWhatAClientCreates(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := kubernetes.NewForConfigOrDie(restconfig.Start(t))

	factory := informers.NewSharedInformerFactory(clients, 0)
	defer factory.Shutdown()
	defer cancel()
	added := make(chan string, 100)
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { added <- object.(*corev1.ConfigMap).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	maps := clients.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(ctx, configMap("first"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name := ""; name != "first"; {
		select {
		case name = <-added:
		case <-ctx.Done():
			t.Fatal("expected an event for the config map")
		}
	}
}

func TestAFaultReachesTheClient(t *testing.T) {
	ctx := context.Background()
	for fault, isExpected := range map[string]func(error) bool{
		"":                  apierrors.IsAlreadyExists,
		"create-overwrites": func(err error) bool { return err == nil },
	} {
		var options []kubeprooftest.Option
		if fault != "" {
			options = append(options, kubeprooftest.WithFaults(fault))
		}
		config := restconfig.Start(t, options...)
		// Faults change JSON, and typed clients prefer protobuf.
		config.ContentType = "application/json"
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		if _, err := maps.Create(ctx, configMap("first"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := maps.Create(ctx, configMap("first"), metav1.CreateOptions{})
		if !isExpected(err) {
			t.Errorf("with the fault %q, got %v", fault, err)
		}
	}
}
