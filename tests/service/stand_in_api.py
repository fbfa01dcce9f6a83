"""An API process that knows the models of `stand_in`; takes the same arguments."""

from service.api import worker

if __name__ == "__main__":
    from tests.service import stand_in

    stand_in.install()
    worker.main()
