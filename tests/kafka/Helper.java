// One long-lived JVM that speaks to a stock broker: admin, producer and consumer of the tests (client.py starts it).
// One command per line on stdin, its words parted by tabs; one line of JSON per command on stdout, {"ok": ...} or
// {"error": "Class: message"}. It ends at "quit" and at the end of stdin, so it never outlives the tests.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.zip.CRC32;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

public class Helper {
    static final long SECONDS = 20;
    static String servers;
    static Admin admin;

    static Properties base() {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        p.put("request.timeout.ms", "8000");
        p.put("default.api.timeout.ms", "18000");
        p.put("reconnect.backoff.ms", "50");
        p.put("reconnect.backoff.max.ms", "200");
        return p;
    }

    static Admin admin() {
        if (admin == null) admin = Admin.create(base());
        return admin;
    }

    static void close() {
        if (admin != null) admin.close(Duration.ofSeconds(1));
        admin = null;
    }

    static <T> T get(Future<T> f) throws Exception { return f.get(SECONDS, TimeUnit.SECONDS); }

    static String text(String s) {
        if (s == null) return "null";
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') b.append('\\').append(c);
            else if (c < ' ') b.append(String.format("\\u%04x", (int) c));
            else b.append(c);
        }
        return b.append('"').toString();
    }

    /** create TOPIC PARTITIONS REPLICATION [KEY=VALUE...]; PARTITIONS "@1,2/2" assigns 0 to brokers 1 and 2, 1 to 2. */
    static String create(String[] a) throws Exception {
        NewTopic topic;
        if (a[2].startsWith("@")) {
            Map<Integer, List<Integer>> assignment = new HashMap<>();
            for (String partition : a[2].substring(1).split("/")) {
                List<Integer> brokers = new ArrayList<>();
                for (String b : partition.split(",")) brokers.add(Integer.parseInt(b));
                assignment.put(assignment.size(), brokers);
            }
            topic = new NewTopic(a[1], assignment);
        } else topic = new NewTopic(a[1], Integer.parseInt(a[2]), Short.parseShort(a[3]));
        Map<String, String> configs = new HashMap<>();
        for (int i = 4; i < a.length; i++) {
            String[] kv = a[i].split("=", 2);
            configs.put(kv[0], kv[1]);
        }
        CreateTopicsResult r = admin().createTopics(List.of(topic.configs(configs)));
        return text(get(r.topicId(a[1])).toString());
    }

    static Properties producing() {
        Properties p = base();
        p.put("key.serializer", StringSerializer.class.getName());
        p.put("value.serializer", StringSerializer.class.getName());
        p.put("acks", "all");
        p.put("linger.ms", "0");
        // On a topic just made the first request may come before the leader is up. With others in flight behind it,
        // the leader, which has no state of this producer, takes the second batch first, and then none ever again.
        p.put("max.in.flight.requests.per.connection", "1");
        p.put("max.block.ms", "60000");
        p.put("delivery.timeout.ms", "60000");
        return p;
    }

    /** produce TOPIC PARTITION RECORDS VALUE_BYTES KEYS HEADERS [TRANSACTIONAL_ID]; without KEYS (0) records have no key,
     *  with HEADERS (1) each has one, "n", of its number. */
    static String produce(String[] a) throws Exception {
        Properties p = producing();
        int records = Integer.parseInt(a[3]), bytes = Integer.parseInt(a[4]), keys = Integer.parseInt(a[5]);
        boolean hasHeaders = a[6].equals("1"), inTransaction = a.length > 7;
        if (inTransaction) p.put("transactional.id", a[7]);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
            if (inTransaction) { producer.initTransactions(); producer.beginTransaction(); }
            for (int i = 0; i < records; i++) {
                String head = i + "-";
                String value = head + "x".repeat(Math.max(0, bytes - head.length()));
                String key = keys > 0 ? "k" + i % keys : null;
                ProducerRecord<String, String> record = new ProducerRecord<>(a[1], Integer.parseInt(a[2]), key, value);
                if (hasHeaders) record.headers().add("n", ("" + i).getBytes(StandardCharsets.UTF_8));
                sent.add(producer.send(record));
            }
            long last = -1;
            for (Future<RecordMetadata> f : sent) last = get(f).offset();
            if (inTransaction) producer.commitTransaction();
            return "" + last;
        }
    }

    /** spread RECORDS PARTITIONS TOPIC...: so many to each partition of each topic, a batch each; awaits all of them. */
    static String spread(String[] a) throws Exception {
        int records = Integer.parseInt(a[1]), partitions = Integer.parseInt(a[2]);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing())) {
            for (int i = 0; i < records; i++) {
                for (int t = 3; t < a.length; t++)
                    for (int p = 0; p < partitions; p++) sent.add(producer.send(new ProducerRecord<>(a[t], p, null, "" + i)));
                producer.flush();
            }
            for (Future<RecordMetadata> f : sent) get(f);
        }
        return "" + sent.size();
    }

    /** Writes to one partition until it is told to end, and remembers what was acknowledged. */
    static class Writer extends Thread {
        final String topic;
        final int partition;
        final CRC32 crc = new CRC32();
        volatile boolean ends;
        volatile long records;
        volatile Throwable failure;

        Writer(String topic, int partition) {
            this.topic = topic;
            this.partition = partition;
            setDaemon(true);
        }

        @Override public void run() {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing())) {
                while (!ends) {
                    List<String> values = new ArrayList<>();
                    List<Future<RecordMetadata>> sent = new ArrayList<>();
                    for (int i = 0; i < 10; i++) values.add(partition + ":" + (records + i));
                    for (String v : values) sent.add(producer.send(new ProducerRecord<>(topic, partition, null, v)));
                    for (int i = 0; i < sent.size(); i++) {
                        get(sent.get(i));
                        crc.update(values.get(i).getBytes(StandardCharsets.UTF_8));
                    }
                    records += sent.size();
                    Thread.sleep(20);
                }
            } catch (Throwable t) {
                failure = t;
            }
        }
    }

    static final List<Writer> writers = new ArrayList<>();

    /** write begin TOPIC PARTITIONS, then write on, then write end: [[records, crc32], ...] by partition, acknowledged. */
    static String write(String[] a) throws Exception {
        if (a[1].equals("begin")) {
            for (int p = 0; p < Integer.parseInt(a[3]); p++) writers.add(new Writer(a[2], p));
            for (Writer w : writers) w.start();
        }
        boolean isEnd = a[1].equals("end");
        StringJoiner rows = new StringJoiner(", ", "[", "]");
        for (Writer w : writers) w.ends = isEnd;
        for (Writer w : writers) {
            if (isEnd) w.join(TimeUnit.SECONDS.toMillis(2 * SECONDS));
            if (w.failure != null) throw new IllegalStateException(w.topic + "-" + w.partition + ": " + w.failure);
            if (isEnd && w.isAlive()) throw new TimeoutException(w.topic + "-" + w.partition + " still writes");
            rows.add("[" + w.records + ", " + (isEnd ? w.crc.getValue() : 0) + "]");
        }
        if (isEnd) writers.clear();
        return rows.toString();
    }

    /** consume TOPIC PARTITION ISOLATION: everything from the log start to the end as it was when asked. */
    static String consume(String[] a) throws Exception {
        Properties p = base();
        p.put("key.deserializer", StringDeserializer.class.getName());
        p.put("value.deserializer", StringDeserializer.class.getName());
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("fetch.max.wait.ms", "100");
        p.put("isolation.level", a[3]);
        TopicPartition tp = new TopicPartition(a[1], Integer.parseInt(a[2]));
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(p)) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            long end = consumer.endOffsets(List.of(tp)).get(tp), begin = consumer.beginningOffsets(List.of(tp)).get(tp);
            long first = -1, last = -1, records = 0, until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            CRC32 crc = new CRC32();
            while (consumer.position(tp) < end) {
                if (System.nanoTime() > until) throw new TimeoutException("at " + consumer.position(tp) + " of " + end);
                for (var r : consumer.poll(Duration.ofMillis(200))) {
                    if (first < 0) first = r.offset();
                    last = r.offset();
                    records++;
                    crc.update(r.value().getBytes(StandardCharsets.UTF_8));
                }
            }
            return "{\"begin\": " + begin + ", \"end\": " + end + ", \"first\": " + first + ", \"last\": " + last
                + ", \"records\": " + records + ", \"crc32\": " + crc.getValue() + "}";
        }
    }

    /** rich TOPIC PARTITION RECORDS [TRANSACTIONAL_ID commit|abort]: keys, values, times and headers of all kinds. */
    static String rich(String[] a) throws Exception {
        Properties p = base();
        p.put("key.serializer", ByteArraySerializer.class.getName());
        p.put("value.serializer", ByteArraySerializer.class.getName());
        p.put("acks", "all");
        p.put("max.in.flight.requests.per.connection", "1");
        p.put("max.block.ms", "60000");
        p.put("delivery.timeout.ms", "60000");
        if (a.length > 4) p.put("transactional.id", a[4]);
        // What is left open stays so: after the usual minute the broker writes an abort by itself. No broker takes more.
        if (a.length > 4) p.put("transaction.timeout.ms", "900000");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            if (a.length > 4) { producer.initTransactions(); producer.beginTransaction(); }
            long now = System.currentTimeMillis();
            for (int i = 0; i < Integer.parseInt(a[3]); i++) {
                byte[] key = i % 5 == 0 ? null : ("key " + i).getBytes(StandardCharsets.UTF_8);
                byte[] value = i % 7 == 0 ? null : ("value " + i + " of " + a[1]).getBytes(StandardCharsets.UTF_8);
                var record = new ProducerRecord<>(a[1], Integer.valueOf(a[2]), Long.valueOf(now - 1000L * i), key, value);
                for (int h = 0; h < i % 3; h++) record.headers().add("h" + h, h == 0 ? null : new byte[] {(byte) i});
                sent.add(producer.send(record));
            }
            long last = -1;
            for (Future<RecordMetadata> f : sent) last = get(f).offset();
            if (a.length > 5 && a[5].equals("abort")) producer.abortTransaction();
            else if (a.length > 4) producer.commitTransaction();
            return "" + last;
        }
    }

    static void add(java.security.MessageDigest d, byte[] part) {
        d.update(java.nio.ByteBuffer.allocate(4).putInt(part == null ? -1 : part.length).array());
        if (part != null) d.update(part);
    }

    /** digest TOPIC PARTITION ISOLATION: of all that a record is, over all records from the log start to the end. */
    static String digest(String[] a) throws Exception {
        Properties p = base();
        p.put("key.deserializer", ByteArrayDeserializer.class.getName());
        p.put("value.deserializer", ByteArrayDeserializer.class.getName());
        p.put("enable.auto.commit", "false");
        p.put("fetch.max.wait.ms", "100");
        p.put("isolation.level", a[3]);
        TopicPartition tp = new TopicPartition(a[1], Integer.parseInt(a[2]));
        var d = java.security.MessageDigest.getInstance("SHA-256");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p)) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            long end = consumer.endOffsets(List.of(tp)).get(tp), begin = consumer.beginningOffsets(List.of(tp)).get(tp);
            long records = 0, until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (consumer.position(tp) < end) {
                if (System.nanoTime() > until) throw new TimeoutException("at " + consumer.position(tp) + " of " + end);
                for (var r : consumer.poll(Duration.ofMillis(200))) {
                    records++;
                    var numbers = java.nio.ByteBuffer.allocate(24).putInt(r.partition()).putLong(r.offset());
                    add(d, numbers.putLong(r.timestamp()).putInt(r.timestampType().id).array());
                    add(d, r.key());
                    add(d, r.value());
                    for (var h : r.headers()) {
                        add(d, h.key().getBytes(StandardCharsets.UTF_8));
                        add(d, h.value());
                    }
                }
            }
            return "{\"begin\": " + begin + ", \"end\": " + end + ", \"records\": " + records + ", \"sha256\": "
                + text(HexFormat.of().formatHex(d.digest())) + "}";
        }
    }

    /** Every replica a broker reports: [[log dir, topic, partition, is future, size, lag], ...]. */
    static String logDirs(int broker) throws Exception {
        StringJoiner rows = new StringJoiner(", ", "[", "]");
        var dirs = get(admin().describeLogDirs(List.of(broker)).allDescriptions()).get(broker);
        for (var dir : dirs.entrySet()) {
            if (dir.getValue().error() != null) throw dir.getValue().error();
            for (var r : dir.getValue().replicaInfos().entrySet())
                rows.add("[" + text(dir.getKey()) + ", " + text(r.getKey().topic()) + ", " + r.getKey().partition() + ", "
                    + r.getValue().isFuture() + ", " + r.getValue().size() + ", " + r.getValue().offsetLag() + "]");
        }
        return rows.toString();
    }

    static AclBinding acl(String user, String topic, String operation) {
        var pattern = new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL);
        var entry = new AccessControlEntry("User:" + user, "*", AclOperation.valueOf(operation), AclPermissionType.ALLOW);
        return new AclBinding(pattern, entry);
    }

    /** Changes of metadata that only the tests of its log make; each returns null. */
    static String change(String[] a) throws Exception {
        switch (a[0]) {
            case "grow":   // grow TOPIC PARTITIONS: to so many
                get(admin().createPartitions(Map.of(a[1], NewPartitions.increaseTo(Integer.parseInt(a[2])))).all());
                break;
            case "reassign": {   // reassign TOPIC PARTITION 1,2,3; "-" cancels
                Optional<NewPartitionReassignment> wanted = Optional.empty();
                if (!a[3].equals("-")) {
                    List<Integer> ids = new ArrayList<>();
                    for (String id : a[3].split(",")) ids.add(Integer.parseInt(id));
                    wanted = Optional.of(new NewPartitionReassignment(ids));
                }
                var tp = new TopicPartition(a[1], Integer.parseInt(a[2]));
                get(admin().alterPartitionReassignments(Map.of(tp, wanted)).all());
                break;
            }
            case "unset": {   // unset TOPIC KEY: back to the default
                var resource = new ConfigResource(ConfigResource.Type.TOPIC, a[1]);
                var gone = new AlterConfigOp(new ConfigEntry(a[2], ""), AlterConfigOp.OpType.DELETE);
                get(admin().incrementalAlterConfigs(Map.of(resource, List.of(gone))).all());
                break;
            }
            case "quota": {   // quota USER VALUE; "-" removes
                var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, a[1]));
                Double value = a[2].equals("-") ? null : Double.valueOf(a[2]);
                var op = new ClientQuotaAlteration.Op("producer_byte_rate", value);
                get(admin().alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(op)))).all());
                break;
            }
            case "allow": get(admin().createAcls(List.of(acl(a[1], a[2], a[3]))).all()); break;   // allow USER TOPIC OPERATION
            case "disallow": get(admin().deleteAcls(List.of(acl(a[1], a[2], a[3]).toFilter())).all()); break;
            case "scram": {   // scram USER MECHANISM; "-USER" removes
                boolean isRemoval = a[1].startsWith("-");
                UserScramCredentialAlteration wanted = isRemoval
                    ? new UserScramCredentialDeletion(a[1].substring(1), ScramMechanism.fromMechanismName(a[2]))
                    : new UserScramCredentialUpsertion(a[1],
                        new ScramCredentialInfo(ScramMechanism.fromMechanismName(a[2]), 4096), "secret");
                get(admin().alterUserScramCredentials(List.of(wanted)).all());
                break;
            }
            default: throw new IllegalArgumentException("no command " + a[0]);
        }
        return "null";
    }

    static String run(String[] a) throws Exception {
        switch (a[0]) {
            case "servers": close(); servers = a[1]; return "null";
            case "create": return create(a);
            case "produce": return produce(a);
            case "consume": return consume(a);
            case "rich": return rich(a);
            case "spread": return spread(a);
            case "write": return write(a);
            case "digest": return digest(a);
            case "log-dirs": return logDirs(Integer.parseInt(a[1]));
            case "delete":   // delete TOPIC...: by one request
                get(admin().deleteTopics(List.of(Arrays.copyOfRange(a, 1, a.length))).all());
                return "null";
            case "topics": {
                StringJoiner names = new StringJoiner(", ", "[", "]");
                var options = new ListTopicsOptions().listInternal(true);
                for (String name : new TreeSet<>(get(admin().listTopics(options).names()))) names.add(text(name));
                return names.toString();
            }
            case "in-sync": {   // in-sync TOPIC PARTITION: node ids of the in-sync replicas that have a leader
                var topic = get(admin().describeTopics(List.of(a[1])).allTopicNames()).get(a[1]);
                StringJoiner ids = new StringJoiner(", ", "[", "]");
                var partition = topic.partitions().get(Integer.parseInt(a[2]));
                if (partition.leader() != null) for (var node : partition.isr()) ids.add("" + node.id());
                return ids.toString();
            }
            case "replicas": {   // replicas TOPIC PARTITION: node ids, those being added or removed among them
                var described = get(admin().describeTopics(List.of(a[1])).allTopicNames()).get(a[1]);
                StringJoiner all = new StringJoiner(", ", "[", "]");
                for (var node : described.partitions().get(Integer.parseInt(a[2])).replicas()) all.add("" + node.id());
                return all.toString();
            }
            case "quorum": {   // how far the metadata log is committed, and by whom
                var info = get(admin().describeMetadataQuorum().quorumInfo());
                return "[" + info.leaderEpoch() + ", " + info.highWatermark() + "]";
            }
            case "move": {   // move TOPIC PARTITION BROKER LOG_DIR: between the log dirs of one broker
                var replica = new TopicPartitionReplica(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3]));
                get(admin().alterReplicaLogDirs(Map.of(replica, a[4])).all());
                return "null";
            }
            case "configure": {   // configure TOPIC|BROKER NAME KEY VALUE
                var resource = new ConfigResource(ConfigResource.Type.valueOf(a[1]), a[2]);
                var set = new AlterConfigOp(new ConfigEntry(a[3], a[4]), AlterConfigOp.OpType.SET);
                get(admin().incrementalAlterConfigs(Map.of(resource, List.of(set))).all());
                return "null";
            }
            case "trim": {   // trim TOPIC PARTITION OFFSET: moves the log start
                var tp = new TopicPartition(a[1], Integer.parseInt(a[2]));
                var until = RecordsToDelete.beforeOffset(Long.parseLong(a[3]));
                return "" + get(admin().deleteRecords(Map.of(tp, until)).lowWatermarks().get(tp)).lowWatermark();
            }
            default: return change(a);
        }
    }

    public static void main(String[] none) {
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            if (line.equals("quit")) break;
            String out;
            try {
                out = "{\"ok\": " + run(line.split("\t")) + "}";
            } catch (Throwable t) {
                Throwable cause = t instanceof ExecutionException && t.getCause() != null ? t.getCause() : t;
                out = "{\"error\": " + text(cause.getClass().getSimpleName() + ": " + cause.getMessage()) + "}";
                if (cause instanceof TimeoutException) close();   // a client that hung is not asked again
            }
            System.out.println(out);
            System.out.flush();
        }
        close();
        System.exit(0);
    }
}
