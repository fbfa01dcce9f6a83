from tfbbb.cli import main

main()
