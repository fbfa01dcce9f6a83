"""`:predict` and `:predict-file` of models, versions and labels."""

from fastapi import Response

from service.api.datasets.schemas import upload_body
from service.api.http.routes import scoped_router
from service.api.keys.keyring import may_predict
from service.api.predictions.answering import answer_table
from service.api.predictions.files import predict_file
from service.api.predictions.routes import add_routes
from service.api.predictions.schemas import (
    FILE_NAME,
    REFUSED_OF_FILES,
    PredictResponse,
    file_response,
    query_parameters,
    table_body,
    table_response,
)

router = scoped_router("/v1/models", "predictions", may_predict)

add_routes(
    router,
    ":predict",
    "Predict with",
    "Returns the predictive distribution of each row, by",
    answer_table,
    response_model=PredictResponse,
    response_description="The predictive distributions.",
    openapi_extra={
        "requestBody": table_body(),
        "parameters": query_parameters("Of a table in Arrow or CSV"),
    },
    responses={200: table_response()},
)
add_routes(
    router,
    ":predict-file",
    "Predict a file with",
    "Returns the rows of a file with their predictions, in the format of the file, by",
    predict_file,
    body=None,  # `received_file` counts the bytes.
    response_class=Response,
    response_description="The file.",
    openapi_extra={
        "requestBody": upload_body(),
        "parameters": [
            *query_parameters("In the URL", REFUSED_OF_FILES),
            FILE_NAME,
        ],
    },
    responses={200: file_response()},
)
