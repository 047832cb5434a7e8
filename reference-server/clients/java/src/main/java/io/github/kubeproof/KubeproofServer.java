package io.github.kubeproof;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * A running reference server of kubeproof: a Kubernetes API server in memory. It needs the binary
 * kubeproof in PATH, or its path in the variable {@code KUBEPROOF_BINARY}.
 *
 * <p>The server stops when it is closed, and when the JVM exits.
 */
public final class KubeproofServer implements AutoCloseable {
    private static final String READY = "listening on ";
    private static final long STOP_SECONDS = 5;

    private final Path directory;
    private final Process process;
    private final Thread hook;
    private final String url;
    private final String token;
    private final String ca;

    private KubeproofServer(Path directory, Process process, String url) throws IOException {
        this.directory = directory;
        this.process = process;
        this.url = url;
        String config = Files.readString(kubeconfig());
        token = field(config, "token");
        byte[] pem = Base64.getDecoder().decode(field(config, "certificate-authority-data"));
        ca = new String(pem, StandardCharsets.UTF_8);
        Files.writeString(caFile(), ca);
        hook = new Thread(process::destroyForcibly);
        Runtime.getRuntime().addShutdownHook(hook);
    }

    /**
     * Starts a server with TLS and the default options.
     *
     * @return the server
     * @throws StartException if the server does not start
     */
    public static KubeproofServer start() {
        return builder().start();
    }

    /**
     * Returns a builder for a server with other options.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the address, such as {@code https://127.0.0.1:41234}.
     *
     * @return the URL without a slash at the end
     */
    public String url() {
        return url;
    }

    /**
     * Returns the bearer token of the administrator.
     *
     * @return the token
     */
    public String token() {
        return token;
    }

    /**
     * Returns the certificate authority.
     *
     * @return the certificate in PEM, or an empty text without TLS
     */
    public String ca() {
        return ca;
    }

    /**
     * Returns a file with the certificate authority.
     *
     * @return the path, which exists until the server stops
     */
    public Path caFile() {
        return directory.resolve("ca.crt");
    }

    /**
     * Returns a kubeconfig of the administrator.
     *
     * @return the path, which exists until the server stops
     */
    public Path kubeconfig() {
        return directory.resolve("kubeconfig");
    }

    /**
     * Returns a TLS context that trusts this server, for example for {@link
     * java.net.http.HttpClient}.
     *
     * @return the context
     * @throws GeneralSecurityException if the server has no TLS
     */
    public SSLContext sslContext() throws GeneralSecurityException {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        byte[] pem = ca.getBytes(StandardCharsets.UTF_8);
        Certificate authority = factory.generateCertificate(new ByteArrayInputStream(pem));
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        try {
            store.load(null, null);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        store.setCertificateEntry("kubeproof", authority);
        TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    /** Stops the server, and removes its files. A second call does nothing. */
    @Override
    public void close() {
        stop(process);
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException error) {
            // The JVM exits, and runs the hook.
        }
        remove(directory);
    }

    private static void stop(Process process) {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private static void remove(Path directory) {
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Files.delete(file);
            }
            Files.delete(directory);
        } catch (NoSuchFileException error) {
            // An earlier call removed it.
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Returns a text of the kubeconfig, which is JSON. Tokens and certificates have no escapes. */
    private static String field(String config, String name) {
        Matcher matcher = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"]*)\"").matcher(config);
        return matcher.find() ? matcher.group(1) : "";
    }

    /** Thrown if a server does not start. The message contains its output. */
    public static final class StartException extends RuntimeException {
        private static final long serialVersionUID = 1;

        private StartException(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** Starts servers with options. */
    public static final class Builder {
        private final List<String> arguments = new ArrayList<>();
        private boolean tls = true;
        private Duration timeout = Duration.ofSeconds(10);
        private String binary = System.getenv().getOrDefault("KUBEPROOF_BINARY", "kubeproof");

        private Builder() {}

        /**
         * Selects TLS or HTTP. The default is TLS. Most clients send tokens only over TLS.
         *
         * @param enabled whether the server uses TLS
         * @return this builder
         */
        public Builder tls(boolean enabled) {
            tls = enabled;
            return this;
        }

        /**
         * Enables deliberate bugs. {@code kubeproof serve --list-faults} lists them.
         *
         * @param names the names, such as {@code lost-update}
         * @return this builder
         */
        public Builder faults(String... names) {
            return repeated("--fault", names);
        }

        /**
         * Creates the objects of files before the server is ready.
         *
         * @param files paths of files in YAML or JSON
         * @return this builder
         */
        public Builder load(String... files) {
            return repeated("--load", files);
        }

        /**
         * Adds a user without permissions.
         *
         * @param token the bearer token of the user
         * @return this builder
         */
        public Builder userToken(String token) {
            return repeated("--user-token", token);
        }

        /**
         * Adds arguments of {@code kubeproof serve}.
         *
         * @param more the arguments
         * @return this builder
         */
        public Builder arguments(String... more) {
            arguments.addAll(List.of(more));
            return this;
        }

        /**
         * Sets the path of the binary.
         *
         * @param path the path
         * @return this builder
         */
        public Builder binary(String path) {
            binary = path;
            return this;
        }

        /**
         * Sets how long the server may take to be ready. The default is 10 seconds.
         *
         * @param limit the time limit
         * @return this builder
         */
        public Builder timeout(Duration limit) {
            timeout = limit;
            return this;
        }

        /**
         * Starts a server with its own state on a free port.
         *
         * @return the server, which is ready
         * @throws StartException if the server does not start
         */
        public KubeproofServer start() {
            Path directory;
            try {
                directory = Files.createTempDirectory("kubeproof-");
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            Process process = null;
            try {
                process = spawn(directory);
                return new KubeproofServer(directory, process, await(process, directory));
            } catch (IOException | RuntimeException error) {
                if (process != null) {
                    stop(process);
                }
                remove(directory);
                if (error instanceof StartException) {
                    throw (StartException) error;
                }
                String help = "install kubeproof, or set KUBEPROOF_BINARY to its path";
                throw new StartException("cannot start " + binary + "; " + help, error);
            }
        }

        private Process spawn(Path directory) throws IOException {
            String kubeconfig = directory.resolve("kubeconfig").toString();
            List<String> command = new ArrayList<>(List.of(binary, "serve"));
            command.addAll(List.of("--listen", "127.0.0.1:0", "--kubeconfig-out", kubeconfig));
            if (tls) {
                command.add("--tls");
            }
            command.addAll(arguments);
            ProcessBuilder builder = new ProcessBuilder(command);
            return builder.redirectError(directory.resolve("log").toFile()).start();
        }

        /** Waits for the line with the URL. A thread reads the rest, so the pipe never fills. */
        private String await(Process process, Path directory) throws IOException {
            CompletableFuture<String> first = new CompletableFuture<>();
            Thread reader = new Thread(() -> {
                try (BufferedReader lines = new BufferedReader(new InputStreamReader(
                        process.getInputStream(), StandardCharsets.UTF_8))) {
                    first.complete(lines.readLine());
                    while (lines.readLine() != null) {}
                } catch (IOException error) {
                    first.completeExceptionally(error);
                }
            });
            reader.setDaemon(true);
            reader.start();
            String line;
            try {
                line = first.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
            } catch (TimeoutException error) {
                throw new StartException("the server is not ready after " + timeout, error);
            } catch (ExecutionException error) {
                throw new StartException("cannot read the output of the server", error);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new StartException("interrupted before the server was ready", error);
            }
            if (line == null || !line.startsWith(READY)) {
                stop(process);
                String log = Files.readString(directory.resolve("log")).trim();
                throw new StartException("kubeproof serve ended: " + log, null);
            }
            return line.substring(READY.length()).trim();
        }

        private Builder repeated(String flag, String... values) {
            for (String value : values) {
                arguments(flag, value);
            }
            return this;
        }
    }
}
