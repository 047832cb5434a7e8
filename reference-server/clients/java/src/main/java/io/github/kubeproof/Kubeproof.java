package io.github.kubeproof;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Starts a reference server for each test that has a parameter of type {@link KubeproofServer}.
 *
 * <pre>{@code
 * @Kubeproof
 * class ControllerTest {
 *     @Test
 *     void reconciles(KubeproofServer server) {
 *         new Controller(server.kubeconfig()).reconcile();
 *     }
 * }
 * }</pre>
 *
 * <p>Methods of one test, such as {@code @BeforeEach}, receive the same server. The server stops
 * when the test ends. The annotation of a method replaces that of its class.
 */
@Inherited
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(KubeproofExtension.class)
public @interface Kubeproof {
    /**
     * Whether all tests of the class share a server. Parameters of {@code @BeforeAll} receive it,
     * too.
     *
     * @return true for one server for all tests of the class
     */
    boolean shared() default false;

    /**
     * Whether the server uses TLS.
     *
     * @return false for HTTP
     */
    boolean tls() default true;

    /**
     * Deliberate bugs of the server. {@code kubeproof serve --list-faults} lists them.
     *
     * @return the names
     */
    String[] faults() default {};

    /**
     * Files with objects that exist before the server is ready.
     *
     * @return the paths
     */
    String[] load() default {};

    /**
     * More arguments of {@code kubeproof serve}.
     *
     * @return the arguments
     */
    String[] arguments() default {};
}
