import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * Stands for the check of a listener of Amazon MSK: a token is a presigned URL, whose signature (AWS Signature Version 4, query parameters)
 * this class computes itself, from the keys that the listener's login module knows: options `key_ID="secret"`, or
 * `key_ID="secret session-token"` for credentials of a role, and `region`.
 */
public class AwsUrlValidator implements AuthenticateCallbackHandler {
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);
    private Map<String, ?> options;

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void close() {
    }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback validator) {
                try {
                    validator.token(checked(validator.tokenValue()));
                } catch (Exception problem) {
                    validator.error("invalid_token: " + problem.getMessage(), null, null);
                }
            } else if (callback instanceof OAuthBearerExtensionsValidatorCallback extensions) {
                extensions.inputExtensions().map().keySet().forEach(extensions::valid);
            } else {
                throw new UnsupportedCallbackException(callback);
            }
        }
    }

    private OAuthBearerToken checked(String token) throws Exception {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
        Map<String, String> query = new TreeMap<>();
        for (String pair : url.getRawQuery().split("&")) {
            String[] parts = pair.split("=", 2);
            query.put(decoded(parts[0]), decoded(parts[1]));
        }
        String signature = query.remove("X-Amz-Signature");
        query.remove("User-Agent"); // the signer adds it after it has signed
        String[] scope = query.get("X-Amz-Credential").split("/", 2);
        String[] known = ((String) options.get("key_" + scope[0])).split(" ");
        String date = query.get("X-Amz-Date");
        String region = (String) options.get("region");
        require(url.getScheme().equals("https") && url.getHost().equals("kafka." + region + ".amazonaws.com"), "host");
        require("kafka-cluster:Connect".equals(query.get("Action")), "action");
        require(scope[1].equals(date.substring(0, 8) + "/" + region + "/kafka-cluster/aws4_request"), "scope");
        require(known.length < 2 ? !query.containsKey("X-Amz-Security-Token") : known[1].equals(query.get("X-Amz-Security-Token")), "session");
        long start = Instant.from(TIME.parse(date)).toEpochMilli();
        long end = start + 1000 * Long.parseLong(query.get("X-Amz-Expires"));
        require(System.currentTimeMillis() < end, "expired");
        String canonical = query.entrySet().stream()
            .map(entry -> encoded(entry.getKey()) + "=" + encoded(entry.getValue())).collect(Collectors.joining("&"));
        String request = String.join("\n", "GET", "/", canonical, "host:" + url.getHost(), "", "host", digest(""));
        String text = String.join("\n", "AWS4-HMAC-SHA256", date, scope[1], digest(request));
        byte[] key = ("AWS4" + known[0]).getBytes(StandardCharsets.UTF_8);
        for (String part : scope[1].split("/")) {
            key = hmac(key, part);
        }
        require(HexFormat.of().formatHex(hmac(key, text)).equals(signature), "signature");
        return new Checked(token, scope[0], start, end);
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new IllegalArgumentException("wrong " + what);
        }
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    private static String digest(String text) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static byte[] hmac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private record Checked(String value, String principalName, Long startTimeMs, long lifetimeMs) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }
}
