package io.github.kubeproof;

import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** Passes a server to tests. Use {@link Kubeproof}, which registers this extension. */
public final class KubeproofExtension implements ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(KubeproofExtension.class);

    /** Creates the extension. JUnit calls this constructor. */
    public KubeproofExtension() {}

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == KubeproofServer.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Optional<Kubeproof> options = options(context);
        // The store of a context closes its servers when the test or the class ends.
        Store store = owner(context, options).getStore(NAMESPACE);
        return store.getOrComputeIfAbsent(
                        KubeproofServer.class, key -> new Resource(start(options)), Resource.class)
                .server;
    }

    private static Optional<Kubeproof> options(ExtensionContext context) {
        Optional<Kubeproof> method =
                AnnotationSupport.findAnnotation(context.getTestMethod(), Kubeproof.class);
        if (method.isPresent()) {
            return method;
        }
        return AnnotationSupport.findAnnotation(context.getTestClass(), Kubeproof.class);
    }

    private static ExtensionContext owner(ExtensionContext context, Optional<Kubeproof> options) {
        ExtensionContext owner = context;
        // A parameterized test has a context between those of its invocations and of the class.
        while (options.map(Kubeproof::shared).orElse(false) && owner.getTestMethod().isPresent()) {
            owner = owner.getParent().orElseThrow();
        }
        return owner;
    }

    private static KubeproofServer start(Optional<Kubeproof> options) {
        KubeproofServer.Builder builder = KubeproofServer.builder();
        options.ifPresent(chosen -> builder.tls(chosen.tls())
                .faults(chosen.faults())
                .load(chosen.load())
                .arguments(chosen.arguments()));
        return builder.start();
    }

    private static final class Resource implements Store.CloseableResource {
        private final KubeproofServer server;

        private Resource(KubeproofServer server) {
            this.server = server;
        }

        @Override
        public void close() {
            server.close();
        }
    }
}
