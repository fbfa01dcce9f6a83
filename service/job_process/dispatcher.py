"""The process that runs jobs: `python -m service.job_process.dispatcher`.

The dispatcher leases jobs, starts them with a launcher, enforces the limits of memory
and time, and requeues jobs whose leases have expired. Several dispatchers can share a
database. The process ends at SIGTERM, or with `--until-input-ends` at the end of its
input; its jobs save their state and return to the queue.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import delete
from sqlalchemy.exc import DBAPIError

from service.job_process.attempt import describe_failure
from service.job_process.cleanup import remove_leftovers
from service.job_process.launcher import Launcher, LocalLauncher
from service.shared.database import Database, new_id
from service.shared.database.tables import DispatcherRegistration
from service.shared.logs import configure_logging
from service.shared.queue import Lease, Queue, StaleAttemptError
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_CLEANUP_SECONDS = 60.0
# Seconds after the request to cancel: first SIGTERM, then SIGKILL.
_SECONDS_TO_STOP, _SECONDS_TO_TERMINATE = 10.0, 20.0
_SECONDS_TO_LEAVE = 25.0
# Time for a trainer to start, import its libraries, and renew its lease.
_SECONDS_TO_START = 300.0
# Pause after a process could not be started, e.g. because the disk is full.
_SECONDS_TO_RECOVER = 10.0


class Dispatcher:
    """Runs jobs, as many as this machine has slots."""

    def __init__(self, queue: Queue, launcher: Launcher) -> None:
        self.id = new_id()
        self._queue = queue
        self._settings = queue.settings
        self._launcher = launcher
        self._renewed_at = self._cleaned_at = float("-inf")
        self._to_stop_since: dict[Lease, float] = {}
        # When the leases expire that no trainer has renewed yet.
        self._expiries: dict[Lease, float] = {}
        self._killed: dict[Lease, str] = {}
        self._dead: list[tuple[Lease, str]] = []
        self._may_launch_at = float("-inf")
        # None before the first look: earlier uploads may be of last week.
        self._newest_upload: float | None = None

    def run(self, stop: threading.Event) -> None:
        """Runs jobs until `stop` is set, then stops and requeues them."""
        logged = None
        while not stop.is_set():
            fault = None
            try:
                self.step()
            except DBAPIError as error:
                fault = f"the database does not answer: {error.orig}"
            except OSError as error:
                fault = f"{error.filename}: {error.strerror}"
            # A persistent fault is logged once, not at every step.
            if fault is not None and fault != logged:
                logger.warning(fault)
            logged = fault
            stop.wait(_POLL_SECONDS)
        self._shut_down()

    def step(self) -> None:
        """Does all due work once."""
        now = time.monotonic()
        if now - self._renewed_at > self._settings.lease_seconds / 3:
            self._register()
            for lease in list(self._expiries):
                with suppress(StaleAttemptError):
                    self._renew(lease)
            self._renewed_at = now
            self._take_over()
            self._queue.expire()
        if now - self._cleaned_at > _CLEANUP_SECONDS:
            # Set first, so that a file that cannot be removed fails only once a minute.
            self._cleaned_at = now
            remove_leftovers(self._queue)
        self._record_deaths()
        running = self._launcher.running()
        for lease in running:
            # The attempt may end at any moment.
            with suppress(StaleAttemptError):
                self._watch(lease, now)
        for of_running in (self._to_stop_since, self._expiries):
            for lease in of_running.keys() - set(running):
                del of_running[lease]
        if now >= self._may_launch_at:
            self._launch()
            self._prepare()

    def _take_over(self) -> None:
        """Takes over attempts that run although their dispatcher has ended."""
        for lease, dispatcher in self._queue.without_dispatcher():
            try:
                is_running = self._launcher.has(lease)
            except OSError as error:
                # The launcher is asked again when leases are next renewed.
                logger.warning("%s: %s", error.filename, error.strerror)
                return
            if is_running:
                # Unless another dispatcher takes it over at the same time.
                with suppress(StaleAttemptError):
                    expiry = self._queue.take_over(lease, dispatcher, self.id)
                    self._launcher.take_over(lease)
                    self._expiries[lease] = expiry
                    logger.info("took over %s", lease)

    def _launch(self) -> None:
        while (
            len(self._launcher.running()) < self._settings.job_slots
            and self._queue.has_work()
        ):
            lease = self._queue.lease(self.id)
            if lease is None:
                return
            logger.info("%s", lease)
            try:
                self._launcher.start(lease)
                self._expiries[lease] = lease.expires_at
            except OSError as error:
                self._may_launch_at = time.monotonic() + _SECONDS_TO_RECOVER
                reason = f"Its process could not be started: {describe_failure(error)}"
                self._queue.release(lease, reason)
                raise

    def _prepare(self) -> None:
        """Starts a trainer ahead of its job when a table was uploaded."""
        newest = self._queue.newest_upload()
        seen, self._newest_upload = self._newest_upload, newest
        has_slot = len(self._launcher.running()) < self._settings.job_slots
        if seen is not None and newest > seen and has_slot:
            self._launcher.prepare()

    def _renew(self, lease: Lease) -> bool:
        """Renews a lease until its trainer does; returns whether it has not yet.

        A trainer may take longer to start than its lease lasts.
        """
        expiry = self._expiries.get(lease)
        if expiry is None:
            return False
        renewed = self._queue.renew(lease, expiry)
        if renewed is None:
            del self._expiries[lease]
            return False
        self._expiries[lease] = renewed
        return True

    def _record_deaths(self) -> None:
        # The launcher reports each death once, but the database may not answer.
        self._dead.extend(self._launcher.ended())
        while self._dead:
            lease, how = self._dead[0]
            # The trainer of a stale attempt has already recorded its end.
            with suppress(StaleAttemptError):
                self._queue.record_death(lease, self._killed.get(lease, how))
                logger.warning("%s: %s", lease, how)
            self._dead.pop(0)
            self._killed.pop(lease, None)

    def _watch(self, lease: Lease, now: float) -> None:
        settings = self._settings
        if self._queue.must_stop(lease):
            since = now - self._to_stop_since.setdefault(lease, now)
            if since > _SECONDS_TO_TERMINATE:
                self._launcher.kill(lease)
            elif since > _SECONDS_TO_STOP:
                self._launcher.terminate(lease)
        elif self._launcher.memory(lease) > settings.job_memory_bytes:
            self._killed[lease] = (
                f"out of memory: it used more than {settings.job_memory_bytes} bytes "
                "(TFBBB_JOB_MEMORY_BYTES)"
            )
            self._launcher.kill(lease)
        elif self._launcher.seconds(lease) > settings.job_seconds:
            self._queue.fail(
                lease,
                f"It took longer than {settings.job_seconds:g} s (TFBBB_JOB_SECONDS)",
            )
            self._launcher.kill(lease)
        elif self._launcher.seconds(lease) > _SECONDS_TO_START and self._renew(lease):
            self._killed[lease] = f"it did not start within {_SECONDS_TO_START:g} s"
            self._launcher.kill(lease)

    def _register(self) -> None:
        """Renews the registration of this process, and deletes expired ones."""
        with self._queue.database.writing() as session:
            now = self._queue.database.now(session)
            old = (
                DispatcherRegistration.seen_at < now - 10 * self._settings.lease_seconds
            )
            session.execute(delete(DispatcherRegistration).where(old))
            mine = session.get(DispatcherRegistration, self.id)
            if mine is None:
                mine = DispatcherRegistration(
                    id=self.id,
                    machine=socket.gethostname(),
                    process=os.getpid(),
                    slots=self._settings.job_slots,
                    started_at=now,
                )
                session.add(mine)
            mine.seen_at = now

    def _shut_down(self) -> None:
        self._launcher.close(_SECONDS_TO_LEAVE)
        try:
            for lease, _ in self._launcher.ended():
                try:
                    self._queue.release(lease, "The service stopped")
                except StaleAttemptError:
                    continue  # Its trainer has already released it.
            with self._queue.database.writing() as session:
                session.execute(
                    delete(DispatcherRegistration).where(
                        DispatcherRegistration.id == self.id
                    )
                )
        except DBAPIError as error:
            # The leases will expire.
            logger.warning("could not deregister: %s", error.orig)


def main(
    make_launcher: Callable[[Settings], Launcher], arguments: list[str] | None = None
) -> int:
    """Runs the process; returns its exit code."""
    parser = argparse.ArgumentParser("python -m service.job_process.dispatcher")
    parser.add_argument(
        "--until-input-ends", action="store_true", help="end with the parent"
    )
    options = parser.parse_args(arguments)
    configure_logging("dispatcher")
    settings = Settings.from_environment()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stop.set())
    if options.until_input_ends:
        threading.Thread(target=_await_end_of_input, args=(stop,), daemon=True).start()
    queue = Queue(Database(settings.effective_database_url), settings)
    Dispatcher(queue, make_launcher(settings)).run(stop)
    return 0


def _await_end_of_input(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


def make_launcher(settings: Settings) -> Launcher:
    """Creates the launcher that the settings name."""
    if settings.launcher == "local":
        return LocalLauncher(settings)
    # Imported late: only this launcher needs Ray.
    from service.job_process.ray_launcher import RayLauncher

    return RayLauncher(settings)


if __name__ == "__main__":
    sys.exit(main(make_launcher))
