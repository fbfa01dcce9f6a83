"""The real trainer, in a process for which one processor is two devices."""

import sys

import tensorflow as tf

from service.job_process.table_trainer import TableTrainer
from service.job_process.trainer import main

if __name__ == "__main__":
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    sys.exit(main(TableTrainer))
