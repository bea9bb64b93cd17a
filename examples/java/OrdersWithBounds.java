import java.time.Instant;
import java.util.*;
import java.util.concurrent.Future;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Writes orders, and behind them the bound of this program into a topic of bounds: java -cp 'kafka/*' OrdersWithBounds.java BROKER */
public class OrdersWithBounds {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", "none", "enable.auto.commit", "false");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
             var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var sent = new ArrayList<Future<RecordMetadata>>();
            for (int minute = 0; minute < 60; minute++)
                sent.add(producer.send(new ProducerRecord<>("orders", "Berlin",
                    "{\"ts\": \"2026-01-05T09:%02d:00Z\", \"units\": 3}".formatted(minute))));
            for (var one : sent) one.get();  // the broker has every message; an error would end the program here
            var parts = consumer.partitionsFor("orders").stream().map(p -> new TopicPartition("orders", p.partition())).toList();
            String offsets = consumer.endOffsets(parts).entrySet().stream()
                .map(end -> "\"%d\":%d".formatted(end.getKey().partition(), end.getValue())).collect(Collectors.joining(","));
            long nanos = Instant.parse("2026-01-05T10:00:00Z").getEpochSecond() * 1_000_000_000L;  // no later order is before 10:00
            producer.send(new ProducerRecord<>("orders-bounds", 0, null,
                "{\"resolved\":\"%d.0000000000\",\"offsets\":{\"orders\":{%s}}}".formatted(nanos, offsets))).get();
        }
    }
}
