package io.github.kubeproof;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the servers and the extension, with the HTTP client of the JDK. */
class KubeproofTest {
    private static final String MAPS = "/api/v1/namespaces/default/configmaps";
    private static final String MAP =
            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"first\"}}";

    static HttpResponse<String> get(KubeproofServer server, String path) throws Exception {
        return send(server, HttpRequest.newBuilder(URI.create(server.url() + path)));
    }

    static HttpResponse<String> create(KubeproofServer server) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(server.url() + MAPS));
        request.header("Content-Type", "application/json");
        return send(server, request.POST(HttpRequest.BodyPublishers.ofString(MAP)));
    }

    private static HttpResponse<String> send(KubeproofServer server, HttpRequest.Builder request)
            throws Exception {
        HttpClient.Builder client = HttpClient.newBuilder();
        if (server.url().startsWith("https:")) {
            client.sslContext(server.sslContext());
        }
        request.header("Authorization", "Bearer " + server.token());
        return client.build().send(request.build(), BodyHandlers.ofString());
    }

    @Nested
    @Kubeproof
    class EachTest {
        private KubeproofServer before;

        @BeforeEach
        void remember(KubeproofServer server) {
            before = server;
        }

        @RepeatedTest(2)
        void hasItsOwnServer(KubeproofServer server) throws Exception {
            assertSame(before, server);
            assertEquals(201, create(server).statusCode());
        }

        @Test
        void receivesFilesThatConnectOtherClients(KubeproofServer server) throws Exception {
            assertEquals(server.ca(), Files.readString(server.caFile()));
            String kubeconfig = Files.readString(server.kubeconfig());
            assertTrue(kubeconfig.contains(server.url()) && kubeconfig.contains(server.token()));
        }

        @Test
        @Kubeproof(tls = false, faults = "already-exists-as-bad-request")
        void canHaveOtherOptions(KubeproofServer server) throws Exception {
            assertTrue(server.url().startsWith("http://127.0.0.1:"), server.url());
            assertEquals(201, create(server).statusCode());
            assertEquals(400, create(server).statusCode());
        }
    }

    /** All tests of this class have a server in common. */
    @Nested
    class Shared extends SharedServer {
        @RepeatedTest(2)
        void keepsTheObjects(KubeproofServer server) throws Exception {
            assertSame(started, server);
            assertEquals(++created == 1 ? 201 : 409, create(server).statusCode());
        }
    }

    @Kubeproof(shared = true)
    abstract static class SharedServer {
        static KubeproofServer started;
        static int created;

        @BeforeAll
        static void remember(KubeproofServer server) {
            started = server;
        }
    }

    @Test
    void objectsExistFromTheStart(@TempDir Path directory) throws Exception {
        Path file = Files.writeString(directory.resolve("objects.json"), MAP.replace(
                "\"metadata\":{", "\"metadata\":{\"namespace\":\"default\","));
        try (KubeproofServer server = KubeproofServer.builder().load(file.toString()).start()) {
            assertEquals(200, get(server, MAPS + "/first").statusCode());
        }
    }

    @Test
    void serversAreIndependentAndStop() throws Exception {
        KubeproofServer first = KubeproofServer.start();
        try (KubeproofServer second = KubeproofServer.start()) {
            assertNotEquals(first.url(), second.url());
            assertEquals(201, create(first).statusCode());
            assertEquals(201, create(second).statusCode());
        }
        first.close();
        first.close();
        assertFalse(Files.exists(first.kubeconfig()));
        IOException error = assertThrows(IOException.class, () -> get(first, "/version"));
        assertTrue(error instanceof ConnectException, error::toString);
    }

    @Test
    void errorsShowTheReason() {
        KubeproofServer.Builder wrong = KubeproofServer.builder().faults("no-such-fault");
        String message =
                assertThrows(KubeproofServer.StartException.class, wrong::start).getMessage();
        assertTrue(message.contains("no-such-fault"), message);

        KubeproofServer.Builder missing = KubeproofServer.builder().binary("/no/such/kubeproof");
        message = assertThrows(KubeproofServer.StartException.class, missing::start).getMessage();
        assertTrue(message.contains("KUBEPROOF_BINARY"), message);

        KubeproofServer.Builder slow = KubeproofServer.builder().timeout(Duration.ZERO);
        message = assertThrows(KubeproofServer.StartException.class, slow::start).getMessage();
        assertTrue(message.contains("not ready"), message);
    }
}
