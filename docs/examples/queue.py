# %% FIFOQueue
queue = tf.queue.FIFOQueue(10, [tf.string, tf.int32], shapes=[(), ()])
enqueue = queue.enqueue_many([["a", "b", "c"], [1, 2, 3]])
first, pair, size = queue.dequeue(), queue.dequeue_many(2), queue.size()
with tf.Session() as session:
    session.run(enqueue)
    print(session.run(size))
    print(session.run(first))
    print(session.run(pair))
