from estimatorkit.storage.records import (
    tf_record_iterator as tf_record_iterator, TFRecordCompressionType as TFRecordCompressionType,
    TFRecordOptions as TFRecordOptions, TFRecordWriter as TFRecordWriter,
)
