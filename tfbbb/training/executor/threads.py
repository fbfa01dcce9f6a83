"""The number of threads that a process computes with."""


def thread_settings(threads: int) -> dict[str, str]:
    """Returns the environment variables of a process that computes with few threads.

    TensorFlow, OpenMP and OpenBLAS read them when they are imported.
    """
    return dict.fromkeys(
        (
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "TF_NUM_INTEROP_THREADS",
            "TF_NUM_INTRAOP_THREADS",
        ),
        str(threads),
    )
