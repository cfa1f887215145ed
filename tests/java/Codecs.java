import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Decompresses as Kafka's brokers and Java clients do. One payload a line on stdin: its codec, a tab, its bytes in hex. One answer a line:
 * SHA-256 of all that they read of it in hex, or nothing where they refuse it.
 */
public class Codecs {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            System.out.println(read(words[0], HexFormat.of().parseHex(words[1])));
        }
    }

    private static String read(String codec, byte[] payload) throws Exception {
        try (InputStream plain = Compression.of(codec).build()
                .wrapForInput(ByteBuffer.wrap(payload), (byte) 2, BufferSupplier.NO_CACHING)) {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(plain.readAllBytes()));
        } catch (Exception refusal) {
            return "";
        }
    }
}
