// Asks Kafka's own classes about bytes (test_wire_agrees.py starts it, as a source file). One question per line on stdin,
// its words parted by tabs; one answer per line on stdout: "ok" or "error", a tab, the rest. It ends at the end of stdin.
//   message NAME VERSION HEX   body of NAME (LeaderAndIsrRequest): its bytes written again, a tab, its JSON
//   record HEX                 value of a metadata record: its bytes written again, a tab, type, version and JSON
//   batches HEX                batches: a line of JSON of all their records
// The package of records is that of 3.9; the test moves the imports where a release moved the classes.
//   build CODEC HEX...         a batch of records with these values, compressed: its bytes
import com.fasterxml.jackson.databind.JsonNode;
import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class WireOracle {
    static String hex(ByteBuffer b) {
        ByteBuffer d = b.duplicate();
        byte[] bytes = new byte[d.remaining()];
        d.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static ByteBuffer bytes(String hex) { return ByteBuffer.wrap(HexFormat.of().parseHex(hex)); }

    static String message(String name, short version, String hex) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.common.message." + name + "Data");
        ByteBuffer in = bytes(hex);
        Object read = type.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(in), version);
        if (in.hasRemaining()) throw new IllegalStateException(in.remaining() + " bytes left");
        Message message = (Message) read;
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        out.flip();
        JsonNode json = (JsonNode) Class.forName(type.getName() + "JsonConverter")
            .getMethod("write", type, short.class).invoke(null, message, version);
        return hex(out) + "\t" + json;
    }

    static String record(String hex) {
        ByteBuffer in = bytes(hex);
        MetadataRecordSerde serde = MetadataRecordSerde.INSTANCE;
        ApiMessageAndVersion read = serde.read(new ByteBufferAccessor(in), in.remaining());
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(serde.recordSize(read, cache));
        serde.write(read, cache, new ByteBufferAccessor(out));
        out.flip();
        MetadataRecordType type = MetadataRecordType.fromId(read.message().apiKey());
        JsonNode json = MetadataJsonConverters.writeJson((ApiMessage) read.message(), read.version());
        return hex(out) + "\t{\"type\":\"" + type + "\",\"version\":" + read.version() + ",\"data\":" + json + "}";
    }

    static String text(ByteBuffer b) { return b == null ? "null" : "\"" + hex(b) + "\""; }

    static String batches(String hex) {
        MemoryRecords records = MemoryRecords.readableRecords(bytes(hex));
        List<String> found = new ArrayList<>();
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                List<String> headers = new ArrayList<>();
                for (Header h : record.headers())
                    headers.add("[" + text(ByteBuffer.wrap(h.key().getBytes(StandardCharsets.UTF_8))) + ","
                        + text(h.value() == null ? null : ByteBuffer.wrap(h.value())) + "]");
                found.add("[" + record.offset() + "," + record.timestamp() + "," + text(record.key()) + ","
                    + text(record.value()) + ",[" + String.join(",", headers) + "]]");
            }
        }
        return "[" + String.join(",", found) + "]";
    }

    static String build(String[] words) {
        SimpleRecord[] made = new SimpleRecord[words.length - 2];
        for (int i = 2; i < words.length; i++)
            made[i - 2] = new SimpleRecord(1700000000000L + i, ("k" + i).getBytes(StandardCharsets.UTF_8), bytes(words[i]).array());
        return hex(MemoryRecords.withRecords(100L, Compression.of(words[1]).build(), made).buffer());
    }

    static String answer(String line) throws Exception {
        String[] words = line.split("\t", -1);
        switch (words[0]) {
            case "message": return message(words[1], Short.parseShort(words[2]), words[3]);
            case "record": return record(words[1]);
            case "batches": return batches(words[1]);
            case "build": return build(words);
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String said;
            try {
                said = "ok\t" + answer(line);
            } catch (Throwable e) {
                Throwable cause = e instanceof InvocationTargetException ? e.getCause() : e;
                said = "error\t" + String.valueOf(cause).replace('\n', ' ').replace('\r', ' ').replace('\t', ' ');
            }
            out.println(said);
        }
        out.flush();
    }
}
